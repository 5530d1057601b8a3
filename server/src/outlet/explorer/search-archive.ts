import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, filterText, matchEvent } from '../../ledger/filter/event-filter.ts'
import { PAGE_BYTES_MAX, SCANNED_ROWS_MAX } from '../../ledger/event-page.ts'
import { findHotFloor } from '../../ledger/hot/hot-floor.ts'
import { findArchivedCandidates } from '../../ledger/search/candidate-runs.ts'
import {
  archiveRefusal,
  archiveRestoring,
  storageTimeout,
} from '../../ledger/segment/archive-refusal.ts'
import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import { readBackward, SegmentColdError } from '../../ledger/segment/cold-reader.ts'
import { requestRestores } from '../../ledger/segment/restore.ts'
import {
  listSegmentsBackward,
  measureSegments,
  readArchivedSeq,
  type Segment,
  type SegmentTimes,
} from '../../ledger/segment/segment-store.ts'
import { readRunBackward } from '../../ledger/table-run-store.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { UserId, WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { rowSlice } from '../../platform/scheduling/row-cost.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { hasExports, type Plan } from '../../tenancy/plans.ts'
import {
  type ArchivePosition,
  archivePositionText,
  firstPosition,
  readArchivePosition,
} from './archive-position.ts'

type ArchiveSearch = {
  userId: UserId
  plan: Plan
  /** Null for all workspaces the member can see. Cursors are bound to this choice. */
  workspaceId: WorkspaceId | null
  workspaceIds: readonly WorkspaceId[]
  hotSinceMs: number
  filter: EventFilter
  cursor: string | null
  limit: number
}

type ArchiveReads = {
  db: Queryable
  archive: ObjectStore
  cache: ColdCache
  cursors: CursorCodec
  monotonic: MonotonicClock
  /** Waits for a permit to search the database. It is never held while the archive is read. */
  acquire: () => Promise<Disposable>
  acquireArchiveRead: () => Promise<Disposable>
  /** Limits each read of the archive. */
  archiveMs: number
  /** Aborting it cancels the search. */
  signal: AbortSignal
}

type ArchiveProgress = {
  segments: number
  segmentsSearched: number
  bytes: number
  bytesSearched: number
}

export type ArchivePage = {
  events: readonly SealedEvent[]
  nextCursor: string | null
  progress: ArchiveProgress
}

/** A request ends after the read during which it exceeds one of these. The next one continues. */
const SEARCH_MS_MAX = 1_000
const SEARCH_BYTES_MAX = 16 * 1_024 * 1_024
const SEGMENTS_PER_QUERY = 8
const RESTORED_AHEAD = 20

/**
 * Searches the events that are no longer hot: first those that are still in the table, then segment after
 * segment, those received last first. Events can be found twice if they are archived meanwhile, but none is
 * missed: the archiver deletes events only after the catalog lists them. A page can be empty, although more
 * events follow.
 */
export async function searchArchive(
  deps: ArchiveReads,
  search: ArchiveSearch,
): Promise<ArchivePage> {
  if (!hasExports(search.plan)) {
    throw new ApiError('plan_required', {
      message: 'Searching archived events requires a plan with exports. Upgrade the plan.',
    })
  }
  const binding = bindingOf(search)
  const text = deps.cursors.read(search.cursor, binding)
  const start = text === null ? firstPosition(search.workspaceIds) : readArchivePosition(text)
  const found = new FoundEvents(search.limit, deps.monotonic)
  const position = start && (await searchFrom(deps, search, start, found))
  const nextCursor = position && deps.cursors.encode(archivePositionText(position), binding)
  return {
    events: found.events,
    nextCursor,
    progress: await measureProgress(deps, search, position),
  }
}

/** Returns where to continue, or null at the end. */
async function searchFrom(
  deps: ArchiveReads,
  search: ArchiveSearch,
  start: ArchivePosition,
  found: FoundEvents,
): Promise<ArchivePosition | null> {
  let position: ArchivePosition | null = start
  try {
    while (position !== null && !found.isFull) {
      deps.signal.throwIfAborted()
      position =
        position.kind === 'table'
          ? await searchTable(deps, search, position, found)
          : await searchSegments(deps, search, position, found)
    }
  } catch (error) {
    // The next request starts at the problem and reports it.
    if (found.events.length > 0 && !deps.signal.aborted && found.position) return found.position
    if (!(error instanceof SegmentColdError)) throw archiveRefusal(error)
    await restoreFrom(deps, search, error.segment).catch((cause: unknown) => {
      throw archiveRefusal(cause)
    })
    throw archiveRestoring()
  }
  return position
}

/** Requests the restore of a segment, and of the next ones that may have matches. */
async function restoreFrom(
  deps: ArchiveReads,
  { workspaceIds, filter }: ArchiveSearch,
  from: Segment,
): Promise<void> {
  const limit = RESTORED_AHEAD
  const segments = await withSlot(deps, (db) =>
    listSegmentsBackward(db, { workspaceIds, ...segmentTimes(filter), from, limit }),
  )
  const wanted: Segment[] = []
  for (const segment of segments) {
    const mayMatch = await withSlot(deps, (db) => findArchivedCandidates(db, { segment, filter }))
    if (mayMatch(segment)) wanted.push(segment)
  }
  const { archive, archiveMs: checkMs, signal } = deps
  await requestRestores(archive, wanted, { checkMs, signal })
}

type TablePosition = ArchivePosition & { kind: 'table' }
type SegmentsPosition = ArchivePosition & { kind: 'segments' }

/** Searches events that are no longer hot, but not archived yet. Usually there are none or few. */
async function searchTable(
  { db, acquire }: ArchiveReads,
  { workspaceIds, hotSinceMs, filter }: ArchiveSearch,
  { workspaceId, toSeq }: TablePosition,
  found: FoundEvents,
): Promise<ArchivePosition> {
  using _slot = await acquire()
  const nextId = workspaceIds.toSorted().find((id) => id > workspaceId)
  const next: ArchivePosition =
    nextId === undefined
      ? { kind: 'segments', from: null, toSeq: 0 }
      : { kind: 'table', workspaceId: nextId, toSeq: Number.MAX_SAFE_INTEGER }
  // The member can lose access to a workspace while they search.
  if (!workspaceIds.includes(workspaceId)) return found.moveTo(next)
  const { floorSeq } = await findHotFloor(db, workspaceId, { hotSinceMs, afterSeq: null })
  const lastSeq = Math.min(toSeq, floorSeq)
  const fromSeq = Math.max(1, lastSeq - SCANNED_ROWS_MAX + 1)
  const run = { workspaceId, fromSeq, toSeq: lastSeq, filter, ...found.room }
  const { events, nextSeq } = await readRunBackward(db, run)
  // Read after the events: those above it were not archived when they were read, so none was missing.
  const archivedSeq = await readArchivedSeq(db, workspaceId)
  found.add(events.filter(({ seq }) => seq > archivedSeq))
  if (nextSeq <= archivedSeq) return found.moveTo(next)
  return found.moveTo({ kind: 'table', workspaceId, toSeq: nextSeq })
}

async function searchSegments(
  deps: ArchiveReads,
  { workspaceIds, filter }: ArchiveSearch,
  { from, toSeq }: SegmentsPosition,
  found: FoundEvents,
): Promise<ArchivePosition | null> {
  const limit = SEGMENTS_PER_QUERY
  const segments = await withSlot(deps, (db) =>
    listSegmentsBackward(db, { workspaceIds, ...segmentTimes(filter), from, limit }),
  )
  let position: SegmentsPosition | null = null
  for (const segment of segments) {
    const isContinued =
      from?.workspaceId === segment.workspaceId && from.lastSeq === segment.lastSeq
    const lastSeq = isContinued ? Math.min(toSeq, segment.lastSeq) : segment.lastSeq
    const nextSeq =
      lastSeq < segment.firstSeq
        ? lastSeq
        : await searchSegment(deps, segment, { filter, toSeq: lastSeq }, found)
    position = found.moveTo(positionIn(segment, nextSeq))
    if (found.isFull) return position
  }
  return segments.length < SEGMENTS_PER_QUERY ? null : position
}

function segmentTimes({ fromMs, toMs, receivedFromMs, receivedToMs }: EventFilter): SegmentTimes {
  return { fromMs, toMs, receivedFromMs, receivedToMs }
}

function positionIn(segment: Segment, toSeq: number): SegmentsPosition {
  const { maxReceivedAtMs, workspaceId, lastSeq } = segment
  return { kind: 'segments', from: { maxReceivedAtMs, workspaceId, lastSeq }, toSeq }
}

/** Returns the seq to continue at, which is below the first one at the end of the segment. */
async function searchSegment(
  deps: ArchiveReads,
  segment: Segment,
  { filter, toSeq }: { filter: EventFilter; toSeq: number },
  found: FoundEvents,
): Promise<number> {
  const mayMatch = await withSlot(deps, (db) => findArchivedCandidates(db, { segment, filter }))
  if (!mayMatch({ firstSeq: segment.firstSeq, lastSeq: toSeq })) return segment.firstSeq - 1
  using _permit = await deps.acquireArchiveRead()
  const { archiveMs: timeoutMs } = deps
  const giveUp = new AbortController()
  const signal = AbortSignal.any([deps.signal, giveUp.signal])
  const groups = readBackward({ ...deps, signal }, segment, { toSeq, filter, mayMatch })
  try {
    for (;;) {
      const late = () => storageTimeout(timeoutMs)
      const group = await withDeadline(groups.next(), { timeoutMs, late })
      if (group.done === true) return segment.firstSeq - 1
      const { events, firstSeq, bytes } = group.value
      const lastSeq = await addMatches(events, filter, found)
      found.bytesRead += bytes
      if (lastSeq !== null) return lastSeq - 1
      found.moveTo(positionIn(segment, firstSeq - 1))
      if (found.isFull) return firstSeq - 1
    }
  } finally {
    giveUp.abort()
  }
}

/** Adds the last matches first. Returns the seq of the last one that was added if more don't fit. */
async function addMatches(
  events: readonly SealedEvent[],
  filter: EventFilter,
  found: FoundEvents,
): Promise<number | null> {
  const slice = rowSlice()
  await slice.next()
  for (const event of events.toReversed()) {
    if (slice.isOver) await slice.next()
    const match = matchEvent(event, filter)
    if (!(typeof match === 'boolean' ? match : await slice.run(match))) continue
    found.add([event])
    if (found.hasPage) return event.seq
  }
  return null
}

/** What a request has found and read so far. */
class FoundEvents {
  readonly events: SealedEvent[] = []
  /** Where to continue after the events that were found. */
  position: ArchivePosition | null = null
  bytesRead = 0
  readonly #limit: number
  readonly #endsAtMs: number
  readonly #monotonic: MonotonicClock
  #pageBytes = 0

  constructor(limit: number, monotonic: MonotonicClock) {
    this.#limit = limit
    this.#monotonic = monotonic
    this.#endsAtMs = monotonic() + SEARCH_MS_MAX
  }

  add(events: readonly SealedEvent[]): void {
    this.events.push(...events)
    for (const { actor, resource, metadata } of events) {
      this.#pageBytes += (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
    }
  }

  moveTo<T extends ArchivePosition>(position: T): T {
    this.position = position
    return position
  }

  get room(): { limit: number; bytesMax: number } {
    return {
      limit: this.#limit - this.events.length,
      bytesMax: PAGE_BYTES_MAX - this.#pageBytes,
    }
  }

  /** The page can't have more events. */
  get hasPage(): boolean {
    return this.events.length >= this.#limit || this.#pageBytes >= PAGE_BYTES_MAX
  }

  get isFull(): boolean {
    const isLate = this.#monotonic() >= this.#endsAtMs
    return this.hasPage || isLate || this.bytesRead >= SEARCH_BYTES_MAX
  }
}

async function measureProgress(
  deps: ArchiveReads,
  { workspaceIds, filter }: ArchiveSearch,
  position: ArchivePosition | null,
): Promise<ArchiveProgress> {
  const from = position?.kind === 'segments' ? position.from : null
  const { all, left } = await withSlot(deps, (db) =>
    measureSegments(db, { workspaceIds, ...segmentTimes(filter), from }),
  )
  const isOver = position === null
  return {
    segments: all.segments,
    segmentsSearched: isOver ? all.segments : all.segments - left.segments,
    bytes: all.bytes,
    bytesSearched: isOver ? all.bytes : all.bytes - left.bytes,
  }
}

async function withSlot<T>(
  { db, acquire }: ArchiveReads,
  read: (db: Queryable) => Promise<T>,
): Promise<T> {
  using _slot = await acquire()
  return await read(db)
}

/** Binds a cursor to the member, the chosen workspace and the filters, but not the page size. */
function bindingOf({ userId, workspaceId, filter }: ArchiveSearch): string {
  return `archive/${userId}/${workspaceId ?? 'all'}/${filterText(filter)}`
}
