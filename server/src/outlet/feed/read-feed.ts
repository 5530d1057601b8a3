import { ApiError } from '../../errors.ts'
import { findSeqAt, isIdFrom } from '../../ledger/chain-search.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { NO_FILTER } from '../../ledger/filter/event-filter.ts'
import { PAGE_BYTES_MAX } from '../../ledger/event-page.ts'
import { type HotEdge, readHotEdge } from '../../ledger/hot/hot-floor-store.ts'
import { eventsOf } from '../../ledger/hot/hot-page.ts'
import { AHEAD_ROWS_MIN, readEvents } from '../../ledger/reader.ts'
import {
  archiveRefusal,
  archiveRestoring,
  REPAIR_RETRY_SECONDS,
} from '../../ledger/segment/archive-refusal.ts'
import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import { SegmentColdError } from '../../ledger/segment/cold-reader.ts'
import { requestRestores } from '../../ledger/segment/restore.ts'
import { SegmentMissingError } from '../../ledger/segment/segment-reader.ts'
import { listSegments, type Segment } from '../../ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import { hasExports, type Plan } from '../../tenancy/plans.ts'

type FeedRequest = {
  workspaceId: WorkspaceId
  after: number
  limit: number
  plan: Plan
  hotSinceMs: number
}

export type FeedReads = {
  database: Database
  archive: ObjectStore
  cache: ColdCache
  /** Waits for a slot to use the database. The slot is disposed of after each use. */
  acquire: () => Promise<Disposable>
  /** Like `acquire`, for archive reads. */
  acquireArchiveRead: () => Promise<Disposable>
  /** Limits the check of each segment that has to be restored. */
  checkMs: number
  /** Aborting it cancels archive reads. */
  signal: AbortSignal
}

/** The reader doesn't read ahead for pages this small. */
const ROWS_PER_READ = AHEAD_ROWS_MIN - 1
/** The size of an event's JSON without its parts. */
const FRAME_BYTES = 640
/** A million events. A client that follows an archived chain needs these segments next. */
const RESTORED_AHEAD = 20

/**
 * Reads the events after `after` in chain order, at most `limit`, or fewer if they are large. Returns none
 * only at the end of the chain. Never skips an event: it throws if it can't return the next one.
 */
export async function readFeed(deps: FeedReads, request: FeedRequest): Promise<SealedEvent[]> {
  const { after, limit } = request
  const headSeq = await readEnd(deps, request)
  const toSeq = Math.min(headSeq, after + limit)
  const events: SealedEvent[] = []
  try {
    await readInto(events, deps, { ...request, toSeq })
  } catch (error) {
    // The next request starts at the problem and reports it.
    if (events.length > 0) return events
    if (error instanceof SegmentMissingError) throw await gapRefusal(deps, request, error)
    if (!(error instanceof SegmentColdError)) throw archiveRefusal(error)
    await restoreFrom(deps, error.segment).catch((cause: unknown) => {
      throw archiveRefusal(cause)
    })
    throw archiveRestoring()
  }
  return events
}

/** Returns the seq of the last event, after checking that the caller can read on from `after`. */
async function readEnd(
  { database: { db }, acquire }: FeedReads,
  { workspaceId, after, plan, hotSinceMs }: FeedRequest,
): Promise<number> {
  using _slot = await acquire()
  const edge = await readHotEdge(db, workspaceId, { afterSeq: after })
  const { headSeq } = edge
  if (after > headSeq) throw beyondEndError(edge)
  if (after === headSeq || hasExports(plan) || isIdFrom(edge.id, hotSinceMs)) return headSeq
  const hotSeq = await findSeqAt(db, workspaceId, { ...edge, atMs: hotSinceMs })
  throw new ApiError('plan_required', {
    message: `Events up to number ${hotSeq - 1} are archived, and reading them requires a plan with exports. Continue with after=${hotSeq - 1}, or upgrade the plan.`,
    details: [{ path: 'after', message: `must be at least ${hotSeq - 1} on this plan` }],
  })
}

/** The caller mixed up workspaces, or the database was restored from a backup. */
function beyondEndError({ headSeq }: HotEdge): ApiError {
  const message = `must be at most ${headSeq}, the number of the last event`
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: after ${message}.`,
    details: [{ path: 'after', message }],
  })
}

/** Names the event to continue at if the catalog lists no file with the next one, but a later file. */
async function gapRefusal(
  { database: { db }, acquire }: FeedReads,
  { workspaceId, after }: FeedRequest,
  cause: SegmentMissingError,
): Promise<unknown> {
  using _slot = await acquire()
  const run = { workspaceId, fromSeq: after + 1, toSeq: Number.MAX_SAFE_INTEGER }
  const [next] = await listSegments(db, { ...run, limit: 1 })
  if (!next || next.firstSeq <= after + 1) return archiveRefusal(cause)
  const lastLost = next.firstSeq - 1
  return new ApiError('unavailable', {
    message: `The archive has no file with events ${after + 1} to ${lastLost}. If they were deleted on purpose, continue with after=${lastLost}. Otherwise, ask the operator of this service to repair the archive.`,
    details: [{ path: 'after', message: `must be at least ${lastLost}` }],
    retryAfterSeconds: REPAIR_RETRY_SECONDS,
    cause,
  })
}

async function readInto(
  events: SealedEvent[],
  deps: FeedReads,
  { workspaceId, after, toSeq }: FeedRequest & { toSeq: number },
): Promise<void> {
  let bytes = 0
  const limit = () => ({
    rows: Math.min(ROWS_PER_READ, toSeq - after - events.length),
    bytes: PAGE_BYTES_MAX - bytes,
    mayBeLarge: true,
  })
  const run = { workspaceId, fromSeq: after + 1, toSeq }
  for await (const page of readEvents(deps, run, NO_FILTER, limit)) {
    for (const event of eventsOf(page)) {
      const nextSeq = after + events.length + 1
      if (event.seq !== nextSeq) {
        throw new SegmentMissingError(
          `The archive has no file with events ${nextSeq} to ${event.seq - 1}.`,
        )
      }
      events.push(event)
      bytes += bytesOf(event)
    }
    if (bytes >= PAGE_BYTES_MAX) return
  }
}

function bytesOf({ actor, resource, metadata }: SealedEvent): number {
  return FRAME_BYTES + (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
}

/** Requests the restore of a cold segment and of those after it. */
async function restoreFrom(
  { database: { db }, archive, acquire, checkMs, signal }: FeedReads,
  { workspaceId, firstSeq: fromSeq }: Segment,
): Promise<void> {
  const listNext = async (): Promise<Segment[]> => {
    using _slot = await acquire()
    const toSeq = Number.MAX_SAFE_INTEGER
    return await listSegments(db, { workspaceId, fromSeq, toSeq, limit: RESTORED_AHEAD })
  }
  await requestRestores(archive, await listNext(), { checkMs, signal })
}
