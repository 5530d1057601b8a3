import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { SealedEvent } from '../../ledger/event.ts'
import type { EventFilter } from '../../ledger/event-filter.ts'
import { type EventPage, HotPage, type PageLimit } from '../../ledger/hot-page.ts'
import { FIELD, HotRow } from '../../ledger/hot-row.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { writeCsvRow } from './csv-bytes.ts'
import type { ExportFormat, ExportRange } from './export-job.ts'
import type { ExportResult } from './export-job-store.ts'
import { CSV_HEADER, csvRow } from './format-csv.ts'
import { jsonlRow } from './format-jsonl.ts'
import { writeJsonlRow } from './jsonl-bytes.ts'

/** Events of a run in their order, some at a time; `limit` says how much the reader may fetch at once. */
export type ReadRange = (
  range: ExportRange,
  filter: EventFilter,
  limit: () => PageLimit,
) => AsyncIterable<EventPage>

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

/**
 * Two lanes to the same bytes. A hot row goes from the bytes of the database straight into those that
 * are sent; a cold one is an object, whose text is put there.
 */
type RowFormat = {
  header: string
  writeRow: (row: HotRow, workspaceId: WorkspaceId, out: Buffer, at: number) => number
  rowOf: (event: SealedEvent) => string
}

const FORMATS: Record<ExportFormat, RowFormat> = {
  JSONL: { header: '', writeRow: writeJsonlRow, rowOf: jsonlRow },
  CSV: { header: CSV_HEADER, writeRow: writeCsvRow, rowOf: csvRow },
}

const CHUNK_BYTES = 128 * 1_024
/** Names, quotes, and the digits that ids, times and hashes become. */
const FRAME_BYTES_MAX = 1_024
/** Of a character of a text. */
const UTF8_BYTES_MAX = 3
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
/** How far a page may exceed the aim when its rows turn out larger than those before. */
const AIM_TIMES_MAX = 4

/**
 * One download: the rows of a job as bytes, in bounded pieces, as fast as they are taken. Between two
 * pieces it holds one page of events and no connection, so a slow client costs some memory and no
 * more. The same job gives the same bytes every time.
 */
export class ExportRun {
  readonly #options: RunOptions
  readonly #format: RowFormat
  readonly #hash = createHash('sha256')
  /** What chunks are made of, one after the other; up to `#used` no chunk was made of it yet. */
  #out = Buffer.alloc(0)
  #used = 0
  #rows = 0
  #bytes = 0
  #isTruncated = false
  #rowsPerPage = ROWS_FIRST_PAGE

  constructor(options: RunOptions) {
    this.#options = options
    this.#format = FORMATS[options.format]
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

  /** A chunk is good until the next one is asked for, which is written in its place. */
  async *chunks(): AsyncGenerator<Buffer, void, void> {
    const { filter, ranges, read } = this.#options
    this.#putText(this.#format.header)
    for (const range of ranges) {
      for await (const page of read(range, filter, () => this.#pageLimit())) {
        yield* this.#pageAsChunks(page)
        if (this.#isTruncated) return
      }
    }
    // The header of a table without rows.
    if (this.#used > 0) yield this.#emit()
  }

  async *#pageAsChunks(page: EventPage): AsyncGenerator<Buffer, void, void> {
    const startedAtMs = this.#options.now()
    const before = { rows: this.#rows, bytes: this.#bytes }
    const count = page instanceof HotPage ? page.count : page.length
    const wanted = Math.min(count, this.#options.rowLimit - this.#rows)
    for (let taken = 0; taken < wanted;) {
      const put =
        page instanceof HotPage
          ? this.#putRows(page, taken, wanted)
          : this.#putEvents(page, taken, wanted)
      taken += put
      this.#rows += put
      yield this.#emit()
      // Others have their turn, and the next page comes in meanwhile.
      await new Promise(setImmediate)
    }
    this.#isTruncated = wanted < count
    const tookMs = this.#options.now() - startedAtMs
    this.#pace(tookMs, (this.#bytes - before.bytes) / Math.max(1, this.#rows - before.rows))
  }

  /** As many as there is room for; returns how many. */
  #putRows({ bytes, rowPlaces, workspaceId }: HotPage, from: number, to: number): number {
    const { writeRow } = this.#format
    const row = new HotRow(bytes)
    for (let nth = from; nth < to; nth += 1) {
      row.moveTo(rowPlaces[nth] ?? 0)
      if (!this.#makeRoom(rowBytesMax(row))) return nth - from
      this.#used = writeRow(row, workspaceId, this.#out, this.#used)
      assert(this.#used <= this.#out.length, 'a row is no longer than it may be')
    }
    return to - from
  }

  #putEvents(events: readonly SealedEvent[], from: number, to: number): number {
    for (let nth = from; nth < to; nth += 1) {
      const event = events[nth]
      assert(event)
      if (!this.#putText(this.#format.rowOf(event))) return nth - from
    }
    return to - from
  }

  #putText(text: string): boolean {
    if (!this.#makeRoom(UTF8_BYTES_MAX * text.length)) return false
    this.#used += this.#out.write(text, this.#used)
    return true
  }

  /** False when a chunk has to leave before. */
  #makeRoom(bytes: number): boolean {
    if (this.#used > 0) return this.#out.length - this.#used >= bytes
    const length = Math.max(CHUNK_BYTES, bytes)
    if (this.#out.length !== length) this.#out = Buffer.allocUnsafeSlow(length)
    return true
  }

  /**
   * Asked before every fetch, so this is where a run that finds nothing for a long time ends. One
   * row more than is wanted tells whether some were cut.
   */
  #pageLimit(): PageLimit {
    this.#options.signal.throwIfAborted()
    const rows = Math.min(this.#rowsPerPage, this.#options.rowLimit - this.#rows + 1)
    return { rows, bytes: this.#rows === 0 ? PAGE_BYTES_AIM : AIM_TIMES_MAX * this.#bytesAim }
  }

  get #bytesAim(): number {
    return this.#bytes < PROVEN_BYTES_MIN ? PAGE_BYTES_AIM : PROVEN_PAGE_BYTES_AIM
  }

  #pace(tookMs: number, rowBytes: number): void {
    const rows = tookMs <= QUICK_MS ? this.#rowsPerPage * 4 : ROWS_PER_PAGE_MIN
    const rowsMax = Math.min(ROWS_PER_PAGE_MAX, Math.floor(this.#bytesAim / rowBytes))
    this.#rowsPerPage = Math.max(1, Math.min(rows, rowsMax))
  }

  #emit(): Buffer {
    const bytes = this.#out.subarray(0, this.#used)
    this.#used = 0
    this.#hash.update(bytes)
    this.#bytes += bytes.length
    return bytes
  }
}

/** At most, a quote becomes two, and of the category and the action each character six. */
function rowBytesMax(row: HotRow): number {
  const escapable = row.endOf(FIELD.action) - row.startOf(FIELD.category)
  return FRAME_BYTES_MAX + 2 * (row.end - row.start) + 4 * escapable
}
