import { type EventFilter, filterText, NO_FILTER } from '../../ledger/event-filter.ts'
import { readHotPage } from '../../ledger/hot-page-store.ts'
import { readArchivedSeq, type Segment } from '../../ledger/segment-store.ts'
import { StorageError } from '../../platform/object-store.ts'
import { countHotEvents } from './count-store.ts'
import { storageUnavailable } from './export-failure.ts'
import type { ExportFormat, ExportRange } from './export-job.ts'
import { type ExportDeps, type ExportWish, planExport } from './exporter.ts'
import { csvRow } from './format-csv.ts'
import { jsonlRow } from './format-jsonl.ts'
import { hasUnready, segmentsOf } from './readiness.ts'

/** What an export would come to. */
export type Preflight = {
  rows: number
  /** The rows were not all counted. */
  isEstimate: boolean
  estimatedBytes: number
  rowLimit: number
  /** There are more rows than the export would hold. */
  isCut: boolean
  /** A part of the archive has to be brought back before a download. */
  needsRestore: boolean
}

/** A statement looks at no more events than these. */
const SEQS_PER_COUNT = 50_000
/** What is not counted by then is taken for like the rest. */
const COUNT_MS_MAX = 5_000
const SAMPLE_ROWS = 100
/** For what has no hot rows to measure: ids, times and hashes make up most of a row. */
const ROW_BYTES: Record<ExportFormat, number> = { JSONL: 1_200, CSV: 600 }

/** Looks before an export is made, and changes nothing. */
export async function preflightExport(deps: ExportDeps, wish: ExportWish): Promise<Preflight> {
  const { ranges, rowLimit } = await planExport(deps, wish)
  const { filter, format } = wish
  const { db } = deps.database
  const tally = new Tally(rowLimit + 1)
  let rowBytes: number | null = null
  for await (const segment of segmentsOf(db, ranges, filter))
    countCold(tally, segment, ranges, filter)
  for (const range of ranges) {
    const archivedSeq = await readArchivedSeq(db, range.workspaceId)
    const hot = { ...range, fromSeq: Math.max(range.fromSeq, archivedSeq + 1) }
    const page = await countHot(deps, hot, { filter, tally })
    if (page) rowBytes ??= await measureRows(deps, page, { filter, format })
  }
  const rows = Math.min(tally.rows, rowLimit)
  return {
    rows,
    isEstimate: tally.isEstimate,
    estimatedBytes: Math.round(rows * (rowBytes ?? ROW_BYTES[format])),
    rowLimit,
    isCut: tally.rows > rowLimit,
    needsRestore: await needsRestore(deps, ranges, filter),
  }
}

async function needsRestore(
  { store, database }: ExportDeps,
  ranges: readonly ExportRange[],
  filter: EventFilter,
): Promise<boolean> {
  try {
    return await hasUnready(store, segmentsOf(database.db, ranges, filter))
  } catch (error) {
    throw error instanceof StorageError ? storageUnavailable(error) : error
  }
}

/** Counts up to a bound, within a time. */
class Tally {
  readonly #rowsMax: number
  readonly #endsAtMs = performance.now() + COUNT_MS_MAX
  #rows = 0
  /** Of those that were looked at one by one. */
  #found = 0
  #looked = 0
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

  addFound(rows: number, looked: number): void {
    this.#rows += rows
    this.#found += rows
    this.#looked += looked
  }

  /** As many of these as of those that were looked at; all of them when none was. */
  guess(events: number): void {
    this.isEstimate = true
    this.#rows += this.#looked === 0 ? events : Math.round((events * this.#found) / this.#looked)
  }
}

/** By the catalogue alone: what a filter picks inside a segment is not known, so it counts as a whole. */
function countCold(
  tally: Tally,
  segment: Segment,
  ranges: readonly ExportRange[],
  filter: EventFilter,
): void {
  const events = ranges
    .filter(({ workspaceId }) => workspaceId === segment.workspaceId)
    .map(({ fromSeq, toSeq }) => overlap(segment, fromSeq, toSeq))
    .reduce((sum, rows) => sum + rows, 0)
  tally.add(events)
  if (!isWhollyMeant(segment, filter)) tally.isEstimate = true
}

function overlap({ firstSeq, lastSeq }: Segment, fromSeq: number, toSeq: number): number {
  return Math.max(0, Math.min(lastSeq, toSeq) - Math.max(firstSeq, fromSeq) + 1)
}

function isWhollyMeant(segment: Segment, { fromMs, toMs, ...others }: EventFilter): boolean {
  const isInTime =
    (fromMs === null || segment.minTimestampMs >= fromMs) &&
    (toMs === null || segment.maxTimestampMs < toMs)
  return isInTime && isUnfiltered({ fromMs: null, toMs: null, ...others })
}

function isUnfiltered(filter: EventFilter): boolean {
  return filterText(filter) === filterText(NO_FILTER)
}

/** Returns the first page in which something matches. */
async function countHot(
  { database }: ExportDeps,
  run: ExportRange,
  { filter, tally }: { filter: EventFilter; tally: Tally },
): Promise<ExportRange | null> {
  if (run.fromSeq > run.toSeq) return null
  const events = run.toSeq - run.fromSeq + 1
  // A chain has no gaps, so there is nothing to look up.
  if (isUnfiltered(filter)) {
    tally.add(events)
    return run
  }
  let found: ExportRange | null = null
  for (let fromSeq = run.fromSeq; fromSeq <= run.toSeq && tally.missing > 0;) {
    if (tally.isLate) {
      tally.guess(run.toSeq - fromSeq + 1)
      break
    }
    const page = { ...run, fromSeq, toSeq: Math.min(run.toSeq, fromSeq + SEQS_PER_COUNT - 1) }
    const rows = await countHotEvents(database.db, page, { filter, countMax: tally.missing })
    tally.addFound(rows, page.toSeq - page.fromSeq + 1)
    if (rows > 0) found ??= page
    fromSeq = page.toSeq + 1
  }
  return found
}

/** The bytes of a row, by some of them. */
async function measureRows(
  { database }: ExportDeps,
  page: ExportRange,
  { filter, format }: { filter: EventFilter; format: ExportFormat },
): Promise<number | null> {
  const { events } = await readHotPage(database, { ...page, filter, limit: SAMPLE_ROWS })
  const rowOf = format === 'CSV' ? csvRow : jsonlRow
  const bytes = events.reduce((sum, event) => sum + Buffer.byteLength(rowOf(event)), 0)
  return events.length === 0 ? null : bytes / events.length
}
