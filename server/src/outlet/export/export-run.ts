import { createHash } from 'node:crypto'
import type { SealedEvent } from '../../ledger/event.ts'
import type { EventFilter } from '../../ledger/event-filter.ts'
import type { ExportFormat, ExportRange } from './export-job.ts'
import type { ExportResult } from './export-job-store.ts'
import { CSV_HEADER, csvRow } from './format-csv.ts'
import { jsonlRow } from './format-jsonl.ts'

/** Events of a run in their order, some at a time; `limit` says how many the reader may fetch at once. */
export type ReadRange = (
  range: ExportRange,
  filter: EventFilter,
  limit: () => number,
) => AsyncIterable<readonly SealedEvent[]>

type RunOptions = {
  format: ExportFormat
  filter: EventFilter
  ranges: readonly ExportRange[]
  rowLimit: number
  read: ReadRange
  now: () => number
  /** Once aborted, nothing more is read. */
  signal: AbortSignal
}

const CHUNK_CHARACTERS = 64 * 1_024
/** Few, because nothing is known yet about how large the rows are. */
const ROWS_FIRST_PAGE = 50
const ROWS_PER_PAGE_MIN = 200
const ROWS_PER_PAGE_MAX = 4_000
/** A client that takes a page within this gets larger ones. */
const QUICK_MS = 500
/** However large the rows are, a page that waits for a client has about these. */
const PAGE_BYTES_AIM = 256 * 1_024
/** Who has taken so much took it to its end: the system's own buffers, which take some, hold less. */
const PROVEN_BYTES_MIN = 16 * 1_024 * 1_024
const PROVEN_PAGE_BYTES_AIM = 4 * 1_024 * 1_024

/**
 * One download: the rows of a job as bytes, in bounded pieces, as fast as they are taken. Between two
 * pieces it holds one page of events and no connection, so a slow client costs some memory and no
 * more. The same job gives the same bytes every time.
 */
export class ExportRun {
  readonly #options: RunOptions
  readonly #rowOf: (event: SealedEvent) => string
  readonly #hash = createHash('sha256')
  /** What no chunk was made of yet. */
  #text: string
  #rows = 0
  #bytes = 0
  #isTruncated = false
  #rowsPerPage = ROWS_FIRST_PAGE

  constructor(options: RunOptions) {
    this.#options = options
    this.#rowOf = options.format === 'CSV' ? csvRow : jsonlRow
    this.#text = options.format === 'CSV' ? CSV_HEADER : ''
  }

  get rows(): number {
    return this.#rows
  }

  /** After the last chunk. */
  get result(): ExportResult {
    return {
      rows: this.#rows,
      isTruncated: this.#isTruncated,
      sha256: this.#hash.copy().digest('hex'),
      bytes: this.#bytes,
    }
  }

  async *chunks(): AsyncGenerator<Buffer, void, void> {
    const { filter, ranges, read } = this.#options
    for (const range of ranges) {
      for await (const events of read(range, filter, () => this.#pageLimit())) {
        yield* this.#rowsAsChunks(events)
        if (this.#isTruncated) return
      }
    }
    // The header of a table without rows.
    if (this.#text !== '') yield this.#emit()
  }

  async *#rowsAsChunks(events: readonly SealedEvent[]): AsyncGenerator<Buffer, void, void> {
    const startedAtMs = this.#options.now()
    const before = { rows: this.#rows, bytes: this.#bytes }
    for (const event of events) {
      if (this.#rows === this.#options.rowLimit) {
        this.#isTruncated = true
        break
      }
      this.#text += this.#rowOf(event)
      this.#rows += 1
      if (this.#text.length < CHUNK_CHARACTERS) continue
      yield this.#emit()
      // Others have their turn, and the next page comes in meanwhile.
      await new Promise(setImmediate)
    }
    if (this.#text !== '') yield this.#emit()
    const tookMs = this.#options.now() - startedAtMs
    this.#pace(tookMs, (this.#bytes - before.bytes) / Math.max(1, this.#rows - before.rows))
  }

  /**
   * Asked before every fetch, so this is where a run that finds nothing for a long time ends. One
   * row more than is wanted tells whether some were cut.
   */
  #pageLimit(): number {
    this.#options.signal.throwIfAborted()
    return Math.min(this.#rowsPerPage, this.#options.rowLimit - this.#rows + 1)
  }

  #pace(tookMs: number, rowBytes: number): void {
    const rows = tookMs <= QUICK_MS ? this.#rowsPerPage * 4 : ROWS_PER_PAGE_MIN
    const bytesAim = this.#bytes < PROVEN_BYTES_MIN ? PAGE_BYTES_AIM : PROVEN_PAGE_BYTES_AIM
    const rowsMax = Math.min(ROWS_PER_PAGE_MAX, Math.floor(bytesAim / rowBytes))
    this.#rowsPerPage = Math.max(1, Math.min(rows, rowsMax))
  }

  #emit(): Buffer {
    const bytes = Buffer.from(this.#text)
    this.#text = ''
    this.#hash.update(bytes)
    this.#bytes += bytes.length
    return bytes
  }
}
