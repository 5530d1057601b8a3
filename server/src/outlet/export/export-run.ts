import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, matchEvent } from '../../ledger/filter/event-filter.ts'
import { type LedgerPage, HotPage, type PageLimit } from '../../ledger/hot/hot-page.ts'
import { FIELD_INDEX, HotRow } from '../../ledger/hot/hot-row.ts'
import { compareAtOnce } from '../../ledger/search/metadata-match.ts'
import { SegmentMissingError } from '../../ledger/segment/segment-reader.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { withPageOwner } from '../../platform/scheduling/row-cost.ts'
import { type SliceOwner, TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { writeCsvRow } from './format/csv-bytes.ts'
import type { ExportFormat, ExportRange, SeqSpan } from './job/export-job.ts'
import type { ExportResult } from './job/export-job-store.ts'
import { CSV_HEADER, csvRow } from './format/format-csv.ts'
import { jsonlRow, jsonlStub } from './format/format-jsonl.ts'
import { writeJsonlRow, writeJsonlStub } from './format/jsonl-bytes.ts'

/** Reads the events of a run in order, page by page. `limit` returns the size of the next page. */
export type ReadRange = (
  range: ExportRange,
  filter: EventFilter,
  limit: () => PageLimit,
) => AsyncIterable<LedgerPage>

type RunOptions = {
  format: ExportFormat
  filter: EventFilter
  ranges: readonly ExportRange[]
  /** With stubs, they count too. */
  rowLimit: number
  /**
   * Whether events that don't match become stubs, so that the file has every event of its ranges. `read` must
   * then return all of them. JSONL only.
   */
  includeStubs: boolean
  read: ReadRange
  now: () => number
  /** Whose share of the main thread the run uses. */
  owner: SliceOwner
  /** Once aborted, nothing more is read. */
  signal: AbortSignal
}

/**
 * Two ways to produce the same bytes. A hot row is copied straight from the database's bytes into the output.
 * A cold row is an object that is formatted as text.
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
/** Field names, quotes, and the digits of ids, times and hashes. */
const FRAME_BYTES_MAX = 1_024
/** Per UTF-16 code unit of a string. */
const UTF8_BYTES_MAX = 3
/** Small, because the size of the rows is not known yet. */
const ROWS_FIRST_PAGE = 50
const ROWS_PER_PAGE_MIN = 200
const ROWS_PER_PAGE_MAX = 4_000
/** A client that takes a page within this time gets larger pages. */
const QUICK_MS = 500
/** Target size of a page that waits for a client, whatever the size of its rows. */
const PAGE_BYTES_TARGET = 256 * 1_024
/** A client that has taken this much has really read it, because the system's socket buffers hold less. */
const PROVEN_BYTES_MIN = 16 * 1_024 * 1_024
const PROVEN_PAGE_BYTES_TARGET = 4 * 1_024 * 1_024
/** By how much a page can exceed the target if its rows are larger than the previous ones. */
const TARGET_FACTOR_MAX = 4

/**
 * One download: produces the rows of a job as bytes, in chunks of limited size, as fast as the client takes
 * them. Between two chunks it keeps one page of events in memory and no connection, so a slow client costs
 * only some memory. The same job produces the same bytes every time.
 */
export class ExportRun {
  readonly #options: RunOptions
  readonly #format: RowFormat
  readonly #hash = createHash('sha256')
  /** The buffer for the next chunk. Its first `#used` bytes are written but not emitted yet. */
  #out = Buffer.alloc(0)
  #used = 0
  #rows = 0
  #stubs = 0
  /** The seq of the next line. Only checked with stubs, because rows have gaps. */
  #nextSeq = 0
  #bytes = 0
  /** One per range, in order. */
  readonly #spans: (SeqSpan | null)[]
  #rangeIndex = 0
  #isTruncated = false
  #rowsPerPage = ROWS_FIRST_PAGE

  constructor(options: RunOptions) {
    assert(!options.includeStubs || options.format === 'JSONL', 'only JSONL has stubs')
    this.#options = options
    this.#format = FORMATS[options.format]
    this.#spans = options.ranges.map(() => null)
  }

  get rows(): number {
    return this.#rows
  }

  get #lines(): number {
    return this.#rows + this.#stubs
  }

  /** Only valid after the last chunk. */
  get result(): ExportResult {
    return {
      rows: this.#rows,
      isTruncated: this.#isTruncated,
      sha256: this.#hash.copy().digest('hex'),
      bytes: this.#bytes,
      spans: [...this.#spans],
    }
  }

  /** A chunk is valid only until the next one is requested, which reuses its buffer. */
  async *chunks(): AsyncGenerator<Buffer, void, void> {
    const { filter, ranges, read, owner } = this.#options
    this.#putText(this.#format.header)
    for (const [index, range] of ranges.entries()) {
      this.#rangeIndex = index
      this.#nextSeq = range.fromSeq
      const pages = read(range, filter, () => this.#pageLimit())
      for await (const page of withPageOwner(owner, pages)) {
        yield* this.#pageAsChunks(page)
        if (this.#isTruncated) return
      }
      if (this.#options.includeStubs) this.#expectSeq(range.toSeq + 1)
    }
    // A CSV file without rows still has its header.
    if (this.#used > 0) yield this.#emit()
  }

  async *#pageAsChunks(page: LedgerPage): AsyncGenerator<Buffer, void, void> {
    const { now, owner, signal } = this.#options
    const slice = new TimeSlice(owner)
    const startedAtMs = now()
    const before = { lines: this.#lines, bytes: this.#bytes }
    const count = page instanceof HotPage ? page.count : page.length
    const wanted = Math.min(count, this.#options.rowLimit - this.#lines)
    for (let taken = 0; taken < wanted;) {
      taken +=
        page instanceof HotPage
          ? this.#putRows(page, taken, wanted)
          : this.#putEvents(page, taken, wanted)
      yield this.#emit()
      // Yields to the event loop, and to other companies. The next page arrives meanwhile.
      await slice.next(signal)
    }
    this.#isTruncated = wanted < count
    const tookMs = now() - startedAtMs
    this.#pace(tookMs, (this.#bytes - before.bytes) / Math.max(1, this.#lines - before.lines))
  }

  /** Writes as many rows and stubs as there is room for, and returns how many. */
  #putRows({ bytes, rowOffsets, workspaceId }: HotPage, from: number, to: number): number {
    const { includeStubs } = this.#options
    const row = new HotRow(bytes)
    for (let nth = from; nth < to; nth += 1) {
      row.moveTo(rowOffsets[nth] ?? 0)
      if (!this.#makeRoom(rowBytesMax(row))) return nth - from
      const isStub = includeStubs && row.isStub
      const write = isStub ? writeJsonlStub : this.#format.writeRow
      this.#used = write(row, workspaceId, this.#out, this.#used)
      assert(this.#used <= this.#out.length, 'a row is no longer than it may be')
      this.#count(row.seq, isStub)
    }
    return to - from
  }

  #putEvents(events: readonly SealedEvent[], from: number, to: number): number {
    const { includeStubs, filter } = this.#options
    for (let nth = from; nth < to; nth += 1) {
      const event = events[nth]
      assert(event)
      // Filters of exports with stubs don't compare metadata, so this takes microseconds.
      const isStub = includeStubs && !compareAtOnce(matchEvent(event, filter))
      if (!this.#putText(isStub ? jsonlStub(event) : this.#format.rowOf(event))) return nth - from
      this.#count(event.seq, isStub)
    }
    return to - from
  }

  #count(seq: number, isStub: boolean): void {
    if (isStub) this.#stubs += 1
    else this.#rows += 1
    const span = this.#spans[this.#rangeIndex]
    if (span) span.lastSeq = seq
    else this.#spans[this.#rangeIndex] = { firstSeq: seq, lastSeq: seq }
    if (!this.#options.includeStubs) return
    this.#expectSeq(seq)
    this.#nextSeq = seq + 1
  }

  /** The reader accepts that the oldest files were deleted, but a file that is short must not look complete. */
  #expectSeq(seq: number): void {
    if (seq === this.#nextSeq) return
    throw new SegmentMissingError(`The archive has no file with event ${this.#nextSeq}.`)
  }

  #putText(text: string): boolean {
    if (!this.#makeRoom(UTF8_BYTES_MAX * text.length)) return false
    this.#used += this.#out.write(text, this.#used)
    return true
  }

  /** Returns false if the current chunk must be emitted first. */
  #makeRoom(bytes: number): boolean {
    if (this.#used > 0) return this.#out.length - this.#used >= bytes
    const length = Math.max(CHUNK_BYTES, bytes)
    if (this.#out.length !== length) this.#out = Buffer.allocUnsafeSlow(length)
    return true
  }

  /**
   * Called before every fetch, so an aborted run ends here even if it finds no rows for a long time. One row
   * more than the limit reveals whether the export is truncated.
   */
  #pageLimit(): PageLimit {
    this.#options.signal.throwIfAborted()
    const rows = Math.min(this.#rowsPerPage, this.#options.rowLimit - this.#lines + 1)
    return {
      rows,
      bytes: this.#lines === 0 ? PAGE_BYTES_TARGET : TARGET_FACTOR_MAX * this.#bytesTarget,
    }
  }

  get #bytesTarget(): number {
    return this.#bytes < PROVEN_BYTES_MIN ? PAGE_BYTES_TARGET : PROVEN_PAGE_BYTES_TARGET
  }

  #pace(tookMs: number, rowBytes: number): void {
    const rows = tookMs <= QUICK_MS ? this.#rowsPerPage * 4 : ROWS_PER_PAGE_MIN
    const rowsMax = Math.min(ROWS_PER_PAGE_MAX, Math.floor(this.#bytesTarget / rowBytes))
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

/** At worst, each byte becomes two (a CSV quote), and in category and action six (a JSON escape). */
function rowBytesMax(row: HotRow): number {
  const escapable = row.endOf(FIELD_INDEX.action) - row.startOf(FIELD_INDEX.category)
  return FRAME_BYTES_MAX + 2 * (row.end - row.start) + 4 * escapable
}
