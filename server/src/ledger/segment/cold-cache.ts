import { untilAborted } from '../../platform/time/deadline.ts'
import type { SealedEvent } from '../event.ts'
import type { OpenSegment } from './segment-reader.ts'

const TTL_MS = 1_000
/** A read that has run for longer may be hanging, so the next reader starts a new one. */
const JOIN_MS_MAX = 3_000
/** About six row groups of typical events. */
const GROUP_BYTES_MAX = 32 * 1_024 * 1_024
/** 32 footers, or about three whole files if they can't be read in parts. */
const OPENED_BYTES_MAX = 16 * 1_024 * 1_024

/**
 * What this node's readers have just read from the archive and verified: footers by file, and decoded row
 * groups. A client that requests the next page soon continues from here, and so do other readers of the
 * same file. For a slow client the data is read again: fifty slow clients would otherwise keep fifty row
 * groups of several megabytes each in memory.
 */
export class ColdCache {
  readonly opened = new ShortLivedCache<OpenSegment>(OPENED_BYTES_MAX)
  readonly groups = new ShortLivedCache<readonly SealedEvent[]>(GROUP_BYTES_MAX)
}

type Sized<Value> = { value: Value; bytes: number }
type Reading<Value> = {
  result: Promise<Sized<Value>>
  startedAtMs: number
  /** The number of waiting readers. When the last one aborts, the read is canceled. */
  waiting: number
  stop: AbortController
}
type CacheEntry<Value> = Sized<Value> & { readers: Set<object>; timer: NodeJS.Timeout }

/**
 * Keeps a value until its readers release it, but no longer than a second after its last use. A value that
 * doesn't fit isn't cached: evicting another one for it could make both be read over and over.
 */
export class ShortLivedCache<Value> {
  readonly #bytesMax: number
  readonly #kept = new Map<string, CacheEntry<Value>>()
  readonly #reading = new Map<string, Reading<Value>>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Null if the value isn't cached. */
  get(key: string, reader: object): Value | null {
    const kept = this.#kept.get(key)
    if (!kept) return null
    clearTimeout(kept.timer)
    kept.timer = this.#dropLater(key)
    kept.readers.add(reader)
    return kept.value
  }

  /**
   * Returns the cached value, or reads it. Concurrent readers share one read. A reader whose signal aborts
   * stops waiting immediately, and the read continues for the others.
   */
  async find(
    key: string,
    reader: object,
    read: (signal: AbortSignal) => Promise<Sized<Value>>,
    signal: AbortSignal | null = null,
  ): Promise<Value> {
    const kept = this.get(key, reader)
    if (kept !== null) return kept
    const reading = this.#join(key, read)
    reading.waiting += 1
    try {
      const weighed = await untilAborted(reading.result, signal)
      this.#keep(key, weighed)
      return this.get(key, reader) ?? weighed.value
    } finally {
      reading.waiting -= 1
      if (reading.waiting === 0) this.#leave(key, reading)
    }
  }

  #join(key: string, read: (signal: AbortSignal) => Promise<Sized<Value>>): Reading<Value> {
    const running = this.#reading.get(key)
    const nowMs = performance.now()
    if (running && nowMs - running.startedAtMs < JOIN_MS_MAX) return running
    const stop = new AbortController()
    const reading = { result: read(stop.signal), startedAtMs: nowMs, waiting: 0, stop }
    this.#reading.set(key, reading)
    return reading
  }

  #leave(key: string, reading: Reading<Value>): void {
    reading.stop.abort()
    if (this.#reading.get(key) === reading) this.#reading.delete(key)
  }

  #keep(key: string, { value, bytes }: Sized<Value>): void {
    if (this.#kept.has(key) || this.#bytes + bytes > this.#bytesMax) return
    this.#kept.set(key, { value, bytes, readers: new Set(), timer: this.#dropLater(key) })
    this.#bytes += bytes
  }

  #dropLater(key: string): NodeJS.Timeout {
    return setTimeout(() => this.drop(key), TTL_MS).unref()
  }

  /** Call this when the reader no longer needs the value. */
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
