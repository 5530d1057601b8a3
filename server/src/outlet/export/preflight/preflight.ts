import { type EventFilter, NO_FILTER } from '../../../ledger/filter/event-filter.ts'
import { storageUnavailable } from '../../../ledger/segment/archive-refusal.ts'
import { hasUnready } from '../../../ledger/segment/restore.ts'
import { readArchivedSeq, type Segment } from '../../../ledger/segment/segment-store.ts'
import { StorageError } from '../../../platform/object-store/object-store.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { withArchivePermit } from '../../../platform/scheduling/slot-scope.ts'
import { linesOf } from '../complete-export.ts'
import { countHotEvents } from './count-store.ts'
import type { ExportEvidence, ExportFormat, ExportRange } from '../job/export-job.ts'
import {
  type ExportScope,
  isUnfiltered,
  isWhollyIncluded,
  countOverlap,
  segmentsOf,
} from '../export-segments.ts'
import { type ExportDeps, type ExportRequest, planExport } from '../exporter.ts'
import { CSV_HEADER, csvRow } from '../format/format-csv.ts'
import { jsonlRow, jsonlStub } from '../format/format-jsonl.ts'
import { type CountedRun, measureRows } from './sample-rows.ts'

type FileEstimate = {
  rows: number
  /** Together with the rows, these are as many as the ranges have events, so their sum is exact. */
  stubs: number
  /** True if not all rows were counted. */
  isEstimate: boolean
  estimatedBytes: number
  /** Accurate to a few percent. Without the rows if not all of them were counted. */
  leastBytes: number
  /** True if there are more rows, including stubs, than the row limit. */
  isCut: boolean
}

/** The estimated size of an export. */
export type Preflight = FileEstimate & {
  evidence: ExportEvidence
  rowLimit: number
  /** True if a part of the archive has to be restored before a download. */
  needsRestore: boolean
}

/** The most events that one statement scans. */
const SEQS_PER_COUNT = 50_000
/** After this time, the rest is extrapolated from the events counted so far. */
const COUNT_MS_MAX = 4_000
/** Used if there are no hot rows to measure. Ids, times and hashes make up most of a row. */
const ROW_BYTES: Record<ExportFormat, number> = { JSONL: 1_200, CSV: 600 }
const ROW_BYTES_MIN: Record<ExportFormat, number> = { JSONL: 450, CSV: 300 }
const STUB_BYTES = 760
const STUB_BYTES_MIN = 550

/** Estimates an export before it is created, and changes nothing. */
export async function estimateExport(deps: ExportDeps, request: ExportRequest): Promise<Preflight> {
  const { ranges, evidence, rowLimit } = await planExport(deps, request)
  const reach = { ranges, filter: request.filter, evidence, rowLimit }
  const estimate = await estimateFile(deps, { ...reach, format: request.format })
  return { ...estimate, evidence, rowLimit, needsRestore: await needsRestore(deps, reach) }
}

/** Estimates the size of an export's file. */
export async function estimateFile(
  deps: ExportDeps,
  reach: ExportScope & { format: ExportFormat },
): Promise<FileEstimate> {
  const { filter, rowLimit, format } = reach
  const { db } = deps.database
  const tally = new RowCount(rowLimit + 1)
  const runs: CountedRun[] = []
  // Only the segments with rows: stubs are counted by the ranges.
  const withRows = segmentsOf(db, { ...reach, evidence: 'NONE' })
  for await (const segment of withRows) countCold(tally, segment, reach)
  const hotRanges = await hotPartsOf(db, reach.ranges)
  for (const range of hotRanges) runs.push(...(await countHot(deps, range, { filter, tally })))
  const rowOf = format === 'CSV' ? csvRow : jsonlRow
  const measured = await measureRows(deps.database, runs, { filter, rowOf })
  const headBytes = format === 'CSV' ? CSV_HEADER.length : 0
  const rows = Math.min(tally.rows, rowLimit)
  const stubs = await estimateStubs(deps, reach, { rows, hotRanges })
  const leastRows = tally.isEstimate ? 0 : rows
  return {
    rows,
    stubs: stubs.count,
    isEstimate: tally.isEstimate,
    estimatedBytes: headBytes + Math.round(rows * (measured ?? ROW_BYTES[format])) + stubs.bytes,
    leastBytes: Math.round(leastRows * (measured ?? ROW_BYTES_MIN[format])) + stubs.leastBytes,
    isCut: Math.max(tally.rows, rows + stubs.count) > rowLimit,
  }
}

/** The parts of the ranges that are not archived. */
async function hotPartsOf(db: Queryable, ranges: readonly ExportRange[]): Promise<ExportRange[]> {
  const parts: ExportRange[] = []
  for (const range of ranges) {
    const archivedSeq = await readArchivedSeq(db, range.workspaceId)
    parts.push({ ...range, fromSeq: Math.max(range.fromSeq, archivedSeq + 1) })
  }
  return parts.filter(({ fromSeq, toSeq }) => fromSeq <= toSeq)
}

/** Measures stubs of any hot events: whether an event matches says little about the size of its stub. */
async function estimateStubs(
  { database }: ExportDeps,
  { ranges, evidence }: ExportScope,
  { rows, hotRanges }: { rows: number; hotRanges: readonly ExportRange[] },
): Promise<{ count: number; bytes: number; leastBytes: number }> {
  const count = evidence === 'COMPLETE' ? Math.max(0, linesOf(ranges) - rows) : 0
  if (count === 0) return { count, bytes: 0, leastBytes: 0 }
  const runs = hotRanges.map((range) => ({ ...range, rows: linesOf([range]) }))
  const sampled = { filter: NO_FILTER, rowOf: jsonlStub }
  const measured = await measureRows(database, runs, sampled)
  return {
    count,
    bytes: Math.round(count * (measured ?? STUB_BYTES)),
    leastBytes: Math.round(count * (measured ?? STUB_BYTES_MIN)),
  }
}

async function needsRestore(
  { archive, database, timeouts }: ExportDeps,
  reach: ExportScope,
): Promise<boolean> {
  try {
    const segments = segmentsOf(database.db, reach)
    return await withArchivePermit(() => hasUnready(archive, segments, timeouts))
  } catch (error) {
    throw error instanceof StorageError ? storageUnavailable(error) : error
  }
}

/** Counts rows up to a maximum, within a time limit. */
class RowCount {
  readonly #rowsMax: number
  readonly #endsAtMs = performance.now() + COUNT_MS_MAX
  #rows = 0
  /** Matches among the `#checked` events that were checked against the filter. */
  #found = 0
  #checked = 0
  isEstimate = false

  constructor(rowsMax: number) {
    this.#rowsMax = rowsMax
  }

  get rows(): number {
    return Math.min(this.#rows, this.#rowsMax)
  }

  get missing(): number {
    return this.#rowsMax - this.rows
  }

  get isLate(): boolean {
    return performance.now() >= this.#endsAtMs
  }

  add(rows: number): void {
    this.#rows += rows
  }

  addFound(rows: number, checked: number): void {
    this.#rows += rows
    this.#found += rows
    this.#checked += checked
  }

  /** Assumes the same share of matches as in the checked events, or that all match if none were checked. */
  addEstimate(events: number): void {
    this.isEstimate = true
    this.#rows += this.#checked === 0 ? events : Math.round((events * this.#found) / this.#checked)
  }
}

/** Uses only the catalog, which can't tell how many events of a segment match, so it counts all of them. */
function countCold(tally: RowCount, segment: Segment, { ranges, filter }: ExportScope): void {
  const events = ranges
    .filter(({ workspaceId }) => workspaceId === segment.workspaceId)
    .map((range) => countOverlap(segment, range))
    .reduce((sum, rows) => sum + rows, 0)
  tally.add(events)
  if (!isWhollyIncluded(segment, filter)) tally.isEstimate = true
}

/** Returns the runs in which rows were found, up to the export's limit. */
async function countHot(
  { database }: ExportDeps,
  run: ExportRange,
  { filter, tally }: { filter: EventFilter; tally: RowCount },
): Promise<CountedRun[]> {
  if (run.fromSeq > run.toSeq) return []
  // A chain has no gaps, so the count needs no query.
  if (isUnfiltered(filter)) {
    const events = run.toSeq - run.fromSeq + 1
    const rows = Math.min(events, tally.missing)
    tally.add(events)
    return rows === 0 ? [] : [{ ...run, toSeq: run.fromSeq + rows - 1, rows }]
  }
  const found: CountedRun[] = []
  for (let fromSeq = run.fromSeq; fromSeq <= run.toSeq && tally.missing > 0;) {
    if (tally.isLate) {
      tally.addEstimate(run.toSeq - fromSeq + 1)
      break
    }
    const page = { ...run, fromSeq, toSeq: Math.min(run.toSeq, fromSeq + SEQS_PER_COUNT - 1) }
    const rows = await countHotEvents(database.db, page, { filter, countMax: tally.missing })
    tally.addFound(rows, page.toSeq - page.fromSeq + 1)
    if (rows > 0) found.push({ ...page, rows })
    fromSeq = page.toSeq + 1
  }
  return found
}
