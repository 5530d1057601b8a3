import assert from 'node:assert/strict'
import type { WorkspaceId } from '../platform/id.ts'
import type { ObjectStore } from '../platform/object-store.ts'
import type { Database } from '../platform/pg.ts'
import { ColdCache } from './cold-cache.ts'
import { readCold } from './cold-reader.ts'
import { type EventFilter, filterText, NO_FILTER } from './event-filter.ts'
import type { EventPage, HotPage, PageLimit } from './hot-page.ts'
import { countRun, readHotPage } from './hot-page-store.ts'
import { SegmentDamagedError, SegmentMissingError } from './segment-reader.ts'
import { listSegments, readArchivedSeq, type Segment } from './segment-store.ts'

export type ReaderDeps = {
  database: Pick<Database, 'pool' | 'db'>
  store: ObjectStore
  /** Asked for before each fetch and disposed of after it; without it everything is fetched at once. */
  turn?: () => Promise<Disposable>
  /** The same for archive reads. Without it, they share `turn`. */
  coldTurn?: () => Promise<Disposable>
  /** Aborting it cancels archive reads. */
  signal?: AbortSignal
  /** Of the node; without it a reader has its own. */
  cache?: ColdCache
}

/** A run of one chain, both ends included. */
export type ChainRun = { workspaceId: WorkspaceId; fromSeq: number; toSeq: number }

/** From so many rows a page on, the next one is fetched while this one is taken. */
export const AHEAD_ROWS_MIN = 400
const SEGMENTS_PER_LOOK = 50

/**
 * The events of a run that match, in the order of the chain, wherever they lie: cold ones from the
 * archive, checked as they are read, then hot ones from the table. Both at once is no contradiction:
 * what the catalog names is read from the archive, whether or not it was removed from the table. A
 * page is good until the next one is asked for.
 */
export async function* readEvents(
  deps: ReaderDeps,
  { workspaceId, fromSeq, toSeq }: ChainRun,
  filter: EventFilter,
  limit: () => PageLimit,
): AsyncGenerator<EventPage, void, void> {
  const { database, store, turn = noTurn, coldTurn = turn, cache = new ColdCache() } = deps
  const cold = { store, turn: coldTurn, cache, signal: deps.signal ?? null }
  let nextSeq = fromSeq
  let before: Segment | null = null
  while (nextSeq <= toSeq) {
    const segments = await lookUp(database, turn, { workspaceId, fromSeq: nextSeq, toSeq })
    for (const segment of segments) {
      refuseHole(before, segment)
      before = segment
      const options = { fromSeq: nextSeq, toSeq, filter, limit }
      if (mayHold(segment, filter)) yield* readCold(cold, segment, options)
      nextSeq = segment.lastSeq + 1
    }
    if (segments.length > 0) continue
    const run = { workspaceId, fromSeq: nextSeq, toSeq }
    nextSeq = yield* readHot(database, turn, run, filter, limit)
  }
}

const noTurn = async (): Promise<Disposable> => ({ [Symbol.dispose]: () => {} })

async function lookUp(
  { db }: ReaderDeps['database'],
  turn: () => Promise<Disposable>,
  run: ChainRun,
): Promise<Segment[]> {
  using _turn = await turn()
  return await listSegments(db, { ...run, limit: SEGMENTS_PER_LOOK })
}

/** The oldest files may have been removed on purpose; between two of them nothing may be missing. */
function refuseHole(before: Segment | null, { firstSeq, firstPrevHash, objectKey }: Segment): void {
  if (before === null) return
  if (firstSeq !== before.lastSeq + 1) {
    throw new SegmentMissingError(
      `The archive has no file with the events ${before.lastSeq + 1} to ${firstSeq - 1}.`,
    )
  }
  if (firstPrevHash !== before.lastHash) {
    throw new SegmentDamagedError(`The file ${objectKey} does not follow ${before.objectKey}.`)
  }
}

/** Whether a segment can hold an event of the time that is asked for. */
export function mayHold(segment: Segment, { fromMs, toMs }: EventFilter): boolean {
  return (
    (fromMs === null || segment.maxTimestampMs >= fromMs) &&
    (toMs === null || segment.minTimestampMs < toMs)
  )
}

/** Returns where to go on: at the end, or where the archiver has taken over meanwhile. */
async function* readHot(
  database: ReaderDeps['database'],
  turn: () => Promise<Disposable>,
  { workspaceId, fromSeq, toSeq }: ChainRun,
  filter: EventFilter,
  limit: () => PageLimit,
): AsyncGenerator<HotPage, number, void> {
  const fetch = async (seq: number, reuse: HotPage | null) => {
    using _turn = await turn()
    const { rows, bytes } = limit()
    const run = { workspaceId, fromSeq: seq, toSeq }
    return await fetchHot(database, { ...run, filter, limit: rows, bytesMax: bytes, reuse })
  }
  let taken: HotPage | null = null
  let nextSeq = fromSeq
  let page = await fetch(nextSeq, null)
  while (page !== null) {
    nextSeq = page.lookedSeq + 1
    const isLast = nextSeq > toSeq
    const isAhead = !isLast && limit().rows >= AHEAD_ROWS_MIN
    const ahead: Promise<HotPage | null> | null = isAhead ? fetch(nextSeq, taken) : null
    // Its failure is met when it is awaited; until then nobody has missed anything.
    ahead?.catch(() => {})
    if (page.count > 0) yield page
    if (isLast) break
    // Nobody needs it any more. The next page takes its place, or that of the one before it.
    const done: HotPage = page
    page = await (ahead ?? fetch(nextSeq, done))
    taken = ahead === null ? null : done
  }
  return nextSeq
}

/**
 * A page, or null when a part of it may have been archived before it was read. Rows are removed only
 * after their segment is in the catalog, so one look at the catalog afterwards is enough.
 */
async function fetchHot(
  database: ReaderDeps['database'],
  query: ChainRun & {
    filter: EventFilter
    limit: number
    bytesMax: number
    reuse: HotPage | null
  },
): Promise<HotPage | null> {
  const page = await readHotPage(database, query)
  const archivedSeq = await readArchivedSeq(database.db, query.workspaceId)
  if (archivedSeq >= query.fromSeq) return null
  const isWhole = filterText(query.filter) === filterText(NO_FILTER)
  const run = { workspaceId: query.workspaceId, fromSeq: query.fromSeq, toSeq: page.lookedSeq }
  const count = isWhole ? page.count : await countRun(database.db, run)
  if (count === page.lookedSeq - query.fromSeq + 1) return page
  // Unless the archiver took it just now; then the next look is at its catalog.
  const isMoved = (await readArchivedSeq(database.db, query.workspaceId)) >= query.fromSeq
  assert(isMoved, 'a chain has no gaps')
  return null
}
