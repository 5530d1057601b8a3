import type { SealedEvent } from './event.ts'
import type { OpenSegment } from './segment-reader.ts'

const KEEP_MS = 1_000
/** About six row groups of usual events. */
const GROUP_BYTES_MAX = 32 * 1_024 * 1_024
/** Some dozen footers, or three whole files of those that cannot be read in parts. */
const OPENED_BYTES_MAX = 16 * 1_024 * 1_024

/**
 * What the readers of a node have just read of the archive, checked: footers by their file, and row
 * groups decoded. A client that comes back at once goes on from here, and so does whoever reads the
 * same file. For a slow client it is read again when it asks for more: fifty of them would hold fifty
 * row groups, of some megabytes each.
 */
export class ColdCache {
  readonly opened = new BriefCache<OpenSegment>(OPENED_BYTES_MAX)
  readonly groups = new BriefCache<readonly SealedEvent[]>(GROUP_BYTES_MAX)
}

export type Weighed<Value> = { value: Value; bytes: number }
type Kept<Value> = Weighed<Value> & { readers: Set<object>; timer: NodeJS.Timeout }

/**
 * Keeps a value until its readers are done with it, and no longer than a moment after its last use.
 * What finds no room is not kept: to throw out another for it would make both be read again and
 * again.
 */
export class BriefCache<Value> {
  readonly #bytesMax: number
  readonly #kept = new Map<string, Kept<Value>>()
  readonly #reading = new Map<string, Promise<Weighed<Value>>>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Null when it has to be read. */
  get(key: string, reader: object): Value | null {
    const kept = this.#kept.get(key)
    if (!kept) return null
    clearTimeout(kept.timer)
    kept.timer = this.#dropLater(key)
    kept.readers.add(reader)
    return kept.value
  }

  /** What is not kept is read, once for all who ask for it meanwhile. */
  async find(key: string, reader: object, read: () => Promise<Weighed<Value>>): Promise<Value> {
    const kept = this.get(key, reader)
    if (kept !== null) return kept
    let reading = this.#reading.get(key)
    if (!reading) {
      reading = read().finally(() => this.#reading.delete(key))
      this.#reading.set(key, reading)
    }
    const weighed = await reading
    this.#keep(key, weighed)
    return this.get(key, reader) ?? weighed.value
  }

  #keep(key: string, { value, bytes }: Weighed<Value>): void {
    if (this.#kept.has(key) || this.#bytes + bytes > this.#bytesMax) return
    this.#kept.set(key, { value, bytes, readers: new Set(), timer: this.#dropLater(key) })
    this.#bytes += bytes
  }

  #dropLater(key: string): NodeJS.Timeout {
    return setTimeout(() => this.drop(key), KEEP_MS).unref()
  }

  /** The reader needs it no more. */
  release(key: string, reader: object): void {
    const kept = this.#kept.get(key)
    kept?.readers.delete(reader)
    if (kept?.readers.size === 0) this.drop(key)
  }

  drop(key: string): void {
    const kept = this.#kept.get(key)
    if (!kept) return
    clearTimeout(kept.timer)
    this.#kept.delete(key)
    this.#bytes -= kept.bytes
  }
}
