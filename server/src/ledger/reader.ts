import assert from 'node:assert/strict'
import type { WorkspaceId } from '../platform/id.ts'
import type { ObjectStore } from '../platform/object-store/object-store.ts'
import type { Database } from '../platform/pg/database.ts'
import { ColdCache } from './segment/cold-cache.ts'
import { readCold } from './segment/cold-reader.ts'
import { type EventFilter, filterText, NO_FILTER } from './filter/event-filter.ts'
import type { LedgerPage, HotPage, PageLimit } from './hot/hot-page.ts'
import { countRun, readHotPage } from './hot/hot-page-store.ts'
import { type ChainReads, type ChainSource, readsFrom } from './replica/chain-reads.ts'
import { SegmentDamagedError, SegmentMissingError } from './segment/segment-reader.ts'
import { listSegments, readArchivedSeq, type Segment } from './segment/segment-store.ts'

type ReaderDeps = {
  database: Pick<Database, 'pool' | 'db'>
  archive: ObjectStore
  /** Where the table is read. By default, in `database`. */
  reads?: ChainReads
  /**
   * Waits for a slot before each fetch; the slot is disposed of after it. Without this, fetches don't wait.
   */
  acquire?: () => Promise<Disposable>
  /** Like `acquire`, for archive reads. By default, they share `acquire`. */
  acquireArchiveRead?: () => Promise<Disposable>
  /** Aborting it cancels archive reads. */
  signal?: AbortSignal
  /** The node's shared cache. Without it, a reader has its own. */
  cache?: ColdCache
}

/** A run of one chain, both ends included. */
export type ChainRun = { workspaceId: WorkspaceId; fromSeq: number; toSeq: number }

/** With `includeStubs`, the events that don't match the filter are read too. */
type ReadRun = ChainRun & { includeStubs?: boolean }

/**
 * If pages have at least this many rows, the next one is fetched while the caller processes the current one.
 */
export const AHEAD_ROWS_MIN = 400
const SEGMENTS_PER_QUERY = 50

/**
 * Reads the matching events of a run in chain order: cold events from the archive, verified as they are read,
 * then hot events from the table. Events can be in both: what the catalog lists is read from the archive,
 * whether or not it was removed from the table. A page is valid only until the next one is requested.
 *
 * With `includeStubs`, pages have every event of the run. Hot events that don't match are stubs (`HotRow.isStub`).
 * The archive stores the columns of a row together, so cold events are always complete.
 */
export async function* readEvents(
  deps: ReaderDeps,
  { workspaceId, fromSeq, toSeq, includeStubs = false }: ReadRun,
  filter: EventFilter,
  limit: () => PageLimit,
): AsyncGenerator<LedgerPage, void, void> {
  const {
    database,
    archive,
    reads = readsFrom(database),
    acquire = noLimit,
    acquireArchiveRead = acquire,
    cache = new ColdCache(),
  } = deps
  const cold = { archive, acquire: acquireArchiveRead, cache, signal: deps.signal ?? null }
  const coldFilter = includeStubs ? NO_FILTER : filter
  let nextSeq = fromSeq
  let previous: Segment | null = null
  let isStalled = false
  while (nextSeq <= toSeq) {
    const segments = await listNextSegments(database, acquire, {
      workspaceId,
      fromSeq: nextSeq,
      toSeq,
    })
    for (const segment of segments) {
      checkNoGap(previous, segment)
      previous = segment
      const options = { fromSeq: nextSeq, toSeq, filter: coldFilter, limit }
      if (mayContain(segment, coldFilter)) yield* readCold(cold, segment, options)
      nextSeq = segment.lastSeq + 1
      isStalled = false
    }
    if (segments.length > 0) continue
    const run = { workspaceId, fromSeq: nextSeq, toSeq, includeStubs }
    const reachedSeq = yield* readHot(reads, acquire, run, filter, limit)
    // The first time, the archiver may have added the event to the catalog after the catalog was read.
    if (reachedSeq === nextSeq && isStalled) {
      throw new SegmentMissingError(`The archive has no file with event ${nextSeq}.`)
    }
    isStalled = reachedSeq === nextSeq
    nextSeq = reachedSeq
  }
}

const noLimit = async (): Promise<Disposable> => ({ [Symbol.dispose]: () => {} })

async function listNextSegments(
  { db }: ReaderDeps['database'],
  acquire: () => Promise<Disposable>,
  run: ChainRun,
): Promise<Segment[]> {
  using _permit = await acquire()
  return await listSegments(db, { ...run, limit: SEGMENTS_PER_QUERY })
}

/** The oldest files may have been deleted on purpose, but no file may be missing between two others. */
function checkNoGap(
  previous: Segment | null,
  { firstSeq, firstPrevHash, objectKey }: Segment,
): void {
  if (previous === null) return
  if (firstSeq !== previous.lastSeq + 1) {
    throw new SegmentMissingError(
      `The archive has no file with events ${previous.lastSeq + 1} to ${firstSeq - 1}.`,
    )
  }
  if (firstPrevHash !== previous.lastHash) {
    throw new SegmentDamagedError(`The file ${objectKey} does not follow ${previous.objectKey}.`)
  }
}

/** Whether a segment can contain an event in the time ranges of the filter. */
export function mayContain(
  segment: Segment,
  { fromMs, toMs, receivedFromMs, receivedToMs }: EventFilter,
): boolean {
  return (
    (fromMs === null || segment.maxTimestampMs >= fromMs) &&
    (toMs === null || segment.minTimestampMs < toMs) &&
    (receivedFromMs === null || segment.maxReceivedAtMs >= receivedFromMs) &&
    (receivedToMs === null || segment.minReceivedAtMs < receivedToMs)
  )
}

/**
 * Returns the seq to continue at: the end, or where the archiver has moved events to the archive meanwhile.
 */
async function* readHot(
  reads: ChainReads,
  acquire: () => Promise<Disposable>,
  { fromSeq, ...run }: ReadRun,
  filter: EventFilter,
  limit: () => PageLimit,
): AsyncGenerator<HotPage, number, void> {
  const { toSeq } = run
  const fetch = async (seq: number, reuse: HotPage | null) => {
    using _permit = await acquire()
    const { rows, bytes, mayBeLarge } = limit()
    const page = { limit: rows, bytesMax: bytes, mayBeLarge, reuse }
    const query = { ...run, fromSeq: seq, filter, ...page }
    return await reads.read(run.workspaceId, (source) => fetchHot(source, query))
  }
  let reusable: HotPage | null = null
  let nextSeq = fromSeq
  let page = await fetch(nextSeq, null)
  while (page !== null) {
    nextSeq = page.scannedSeq + 1
    const isLast = nextSeq > toSeq
    const isAhead = !isLast && limit().rows >= AHEAD_ROWS_MIN
    const ahead: Promise<HotPage | null> | null = isAhead ? fetch(nextSeq, reusable) : null
    // The error is handled where the promise is awaited. This prevents an unhandled rejection until then.
    ahead?.catch(() => {})
    if (page.count > 0) yield page
    if (isLast) break
    // The caller is done with this page, so one of the next pages reuses its buffer.
    const done: HotPage = page
    page = await (ahead ?? fetch(nextSeq, done))
    reusable = ahead === null ? null : done
  }
  return nextSeq
}

/**
 * Returns a page, or null if some of it may have been archived before it was read. Rows are deleted only
 * after their segment is in the catalog, so reading the catalog after the page detects this.
 */
async function fetchHot(
  { pool, db }: ChainSource,
  query: ReadRun & {
    filter: EventFilter
    limit: number
    bytesMax: number
    mayBeLarge: boolean | undefined
    reuse: HotPage | null
  },
): Promise<HotPage | null> {
  const page = await readHotPage({ pool, db }, query)
  const archivedSeq = await readArchivedSeq(db, query.workspaceId)
  if (archivedSeq >= query.fromSeq) return null
  const isWhole = query.includeStubs || filterText(query.filter) === filterText(NO_FILTER)
  const run = { workspaceId: query.workspaceId, fromSeq: query.fromSeq, toSeq: page.scannedSeq }
  const count = isWhole ? page.count : await countRun(db, run)
  if (count === page.scannedSeq - query.fromSeq + 1) return page
  // If rows are missing, the archiver must have moved them just now. The caller
  // then continues from the catalog.
  const isMoved = (await readArchivedSeq(db, query.workspaceId)) >= query.fromSeq
  assert(isMoved, 'a chain has no gaps')
  return null
}
