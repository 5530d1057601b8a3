import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { WorkspaceId } from '../platform/id.ts'
import type { ObjectStore } from '../platform/object-store.ts'
import type { Database } from '../platform/pg.ts'
import type { SealedEvent } from './event.ts'
import { type EventFilter, filterText, matchesFilter, NO_FILTER } from './event-filter.ts'
import { countRun, type HotPage, readHotPage } from './hot-page-store.ts'
import { readSegment, SegmentDamagedError } from './segment-reader.ts'
import { listSegments, readArchivedSeq, type Segment } from './segment-store.ts'

export type ReaderDeps = { database: Pick<Database, 'pool' | 'db'>; store: ObjectStore }

/** A run of one chain, both ends included. */
export type ChainRun = { workspaceId: WorkspaceId; fromSeq: number; toSeq: number }

/** A file that the catalogue names is not there. */
export class SegmentMissingError extends Error {
  override name = 'SegmentMissingError'
}

/** From so many rows a page on, the next one is fetched while this one is taken. */
const AHEAD_ROWS_MIN = 400

/**
 * The events of a run that match, in the order of the chain, wherever they lie: cold ones from the
 * archive, checked as they are read, then hot ones from the table. Both at once is no contradiction:
 * what the catalogue names is read from the archive, whether or not it was removed from the table.
 */
export async function* readEvents(
  deps: ReaderDeps,
  { workspaceId, fromSeq, toSeq }: ChainRun,
  filter: EventFilter,
  limit: () => number,
): AsyncGenerator<readonly SealedEvent[], void, void> {
  let nextSeq = fromSeq
  let before: Segment | null = null
  while (nextSeq <= toSeq) {
    const run = { workspaceId, fromSeq: nextSeq, toSeq }
    const [segment] = await listSegments(deps.database.db, { ...run, limit: 1 })
    if (segment) {
      refuseHole(before, segment)
      before = segment
      if (mayHold(segment, filter)) yield* readCold(deps.store, segment, run, filter)
      nextSeq = segment.lastSeq + 1
    } else {
      nextSeq = yield* readHot(deps.database, run, filter, limit)
    }
  }
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

async function* readCold(
  store: ObjectStore,
  segment: Segment,
  { fromSeq, toSeq }: ChainRun,
  filter: EventFilter,
): AsyncGenerator<readonly SealedEvent[], void, void> {
  const bytes = await readChecked(store, segment)
  const range = {
    fromSeq,
    toSeq,
    ...(filter.fromMs !== null && { fromTimestampMs: filter.fromMs }),
    ...(filter.toMs !== null && { toTimestampMs: filter.toMs }),
  }
  for await (const events of readSegment(bytes, range)) {
    const matching = events.filter((event) => matchesFilter(event, filter))
    if (matching.length > 0) yield matching
  }
}

/** The file's bytes, when they are those that were catalogued. */
export async function readChecked(store: ObjectStore, segment: Segment): Promise<Buffer> {
  const { objectKey, firstSeq, lastSeq, sha256 } = segment
  const where = `${objectKey} (events ${firstSeq} to ${lastSeq})`
  const bytes = await store.read(objectKey)
  if (bytes === null) throw new SegmentMissingError(`The archive has no file ${where}.`)
  if (hash('sha256', bytes, 'hex') !== sha256) {
    throw new SegmentDamagedError(
      `The file ${where} is not the one that was archived: its SHA-256 differs.`,
    )
  }
  return bytes
}

/** Returns where to go on: at the end, or where the archiver has taken over meanwhile. */
async function* readHot(
  database: ReaderDeps['database'],
  { workspaceId, fromSeq, toSeq }: ChainRun,
  filter: EventFilter,
  limit: () => number,
): AsyncGenerator<readonly SealedEvent[], number, void> {
  const fetch = (seq: number) =>
    fetchHot(database, { workspaceId, fromSeq: seq, toSeq, filter, limit: limit() })
  let nextSeq = fromSeq
  let page = await fetch(nextSeq)
  while (page !== null) {
    nextSeq = page.lookedSeq + 1
    const isLast = nextSeq > toSeq
    const isAhead = !isLast && limit() >= AHEAD_ROWS_MIN
    const ahead = isAhead ? fetch(nextSeq) : null
    // Its failure is met when it is awaited; until then nobody has missed anything.
    ahead?.catch(() => {})
    if (page.events.length > 0) yield page.events
    if (isLast) break
    page = await (ahead ?? fetch(nextSeq))
  }
  return nextSeq
}

/**
 * A page, or null when a part of it may have been archived before it was read. Rows are removed only
 * after their segment is in the catalogue, so one look at the catalogue afterwards is enough.
 */
async function fetchHot(
  database: ReaderDeps['database'],
  query: ChainRun & { filter: EventFilter; limit: number },
): Promise<HotPage | null> {
  const page = await readHotPage(database, query)
  const archivedSeq = await readArchivedSeq(database.db, query.workspaceId)
  if (archivedSeq >= query.fromSeq) return null
  const isWhole = filterText(query.filter) === filterText(NO_FILTER)
  const run = { workspaceId: query.workspaceId, fromSeq: query.fromSeq, toSeq: page.lookedSeq }
  const count = isWhole ? page.events.length : await countRun(database.db, run)
  if (count === page.lookedSeq - query.fromSeq + 1) return page
  // Unless the archiver took it just now; then the next look is at its catalogue.
  const isMoved = (await readArchivedSeq(database.db, query.workspaceId)) >= query.fromSeq
  assert(isMoved, 'a chain has no gaps')
  return null
}
