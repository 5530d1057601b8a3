import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { countFitting, type RecorderQueue } from '../recorder/queue.ts'
import { SpoolSegment } from './spool-segment.ts'

type DiskQueueOptions = {
  folder: string
  bytesMax: number
  eventsInMemoryMax: number
  onError: (error: unknown) => void
  /** Called when the queue is closed. */
  release: () => void
}

const SEGMENT_EVENTS_MAX = 1_000
const SEGMENT_BYTES_MAX = 1_048_576
const SEGMENT_NAME = /^(\d{12})\.jsonl$/

/**
 * A queue in files. An event is in a file before it is in memory, and a file is deleted only when the service
 * has stored or refused all of its events. After a crash, the events of a file that was settled in part are
 * sent again, and their idempotency keys keep the service from storing them twice.
 */
export class DiskQueue implements RecorderQueue {
  readonly isDurable = true
  readonly #options: DiskQueueOptions
  /** Oldest first. Events are appended to the last one. */
  readonly #segments: SpoolSegment[]
  #nextNumber: number
  #bytes: number
  /** Whether the events of the last segment are also kept in memory. */
  #hasMemory = true
  #length: number
  #untaken: number
  /** How many events of the oldest segment are settled. */
  #settledOfFirst = 0
  /** The next event to take: the index of its segment, and its index in that segment. */
  #takenSegments = 0
  #takenLines = 0

  constructor(options: DiskQueueOptions) {
    this.#options = options
    const entries = readdirSync(options.folder, { withFileTypes: true })
    const found = entries.filter(({ name }) => SEGMENT_NAME.test(name))
    found.sort((a, b) => (a.name < b.name ? -1 : 1))
    this.#nextNumber = Number(SEGMENT_NAME.exec(found.at(-1)?.name ?? '')?.[1] ?? 0) + 1
    // Links and pipes are not from a recorder, and reading a pipe would wait for its writer.
    this.#segments = found
      .filter((entry) => entry.isFile())
      .map(({ name }) => SpoolSegment.recover(join(options.folder, name)))
    this.#length = this.#segments.reduce((sum, { count }) => sum + count, 0)
    this.#untaken = this.#length
    this.#bytes = this.#segments.reduce((sum, { bytes }) => sum + bytes, 0)
    this.#dropSettled()
  }

  get length(): number {
    return this.#length
  }

  get untaken(): number {
    return this.#untaken
  }

  push(line: string): boolean {
    const { bytesMax, onError } = this.#options
    try {
      // A character has at most three bytes.
      if (this.#bytes + 3 * line.length >= bytesMax) return false
      const segment = this.#current()
      const bytesBefore = segment.bytes
      segment.append(line, this.#hasMemory)
      this.#bytes += segment.bytes - bytesBefore
    } catch (error) {
      onError(error)
      return false
    }
    this.#length += 1
    this.#untaken += 1
    return true
  }

  async take(limits: { eventsMax: number; charsMax: number }): Promise<readonly string[]> {
    for (;;) {
      const segment = this.#segments[this.#takenSegments]
      if (!segment) return []
      const { lines } = segment
      if (lines === null) {
        await segment.load()
        // Earlier segments can have been settled meanwhile, which changes the index.
        continue
      }
      const count = countFitting(lines, this.#takenLines, limits)
      if (count > 0) {
        const taken = lines.slice(this.#takenLines, this.#takenLines + count)
        this.#takenLines += count
        this.#untaken -= count
        return taken
      }
      // More can still be appended to it.
      if (segment.isOpen) return []
      this.#takenSegments += 1
      this.#takenLines = 0
    }
  }

  settle(count: number): void {
    this.#length -= count
    this.#settledOfFirst += count
    this.#dropSettled()
  }

  close(): void {
    for (const segment of this.#segments) {
      if (segment.count === 0) segment.delete()
      else segment.seal()
    }
    this.#options.release()
  }

  /** The segment to append to. */
  #current(): SpoolSegment {
    const last = this.#segments.at(-1)
    if (last?.isOpen) {
      if (last.count < SEGMENT_EVENTS_MAX && last.bytes < SEGMENT_BYTES_MAX) return last
      last.seal()
    }
    const name = `${String(this.#nextNumber).padStart(12, '0')}.jsonl`
    const segment = SpoolSegment.create(join(this.#options.folder, name))
    this.#nextNumber += 1
    const inMemory = this.#segments.reduce((sum, { lines }) => sum + (lines?.length ?? 0), 0)
    this.#hasMemory = inMemory < this.#options.eventsInMemoryMax
    this.#segments.push(segment)
    return segment
  }

  #dropSettled(): void {
    for (;;) {
      const [first] = this.#segments
      if (!first || this.#settledOfFirst < first.count) return
      const { count, bytes, isOpen } = first
      try {
        if (isOpen) first.clear()
        else first.delete()
      } catch (error) {
        // The next process sends its events again, with the same idempotency keys.
        this.#options.onError(error)
        if (isOpen) first.seal()
      }
      this.#settledOfFirst -= count
      this.#bytes -= bytes
      if (first.isOpen) {
        this.#takenLines = 0
        return
      }
      this.#segments.shift()
      // If the next event was to be taken from this segment, it is now the first of the next one.
      if (this.#takenSegments > 0) this.#takenSegments -= 1
      else this.#takenLines = 0
    }
  }
}
