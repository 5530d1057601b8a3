import { ApiError } from '../../errors.ts'
import type { EventId, SealedEvent } from '../../ledger/event.ts'
import { findStoredEvent } from '../../ledger/find-event-store.ts'
import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import { findInSegment, SegmentColdError } from '../../ledger/segment/cold-reader.ts'
import { findSegmentOfId } from '../../ledger/segment/segment-store.ts'
import { idTimeMs, type WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { hasExports, type Plan } from '../../tenancy/plans.ts'

type EventRequest = {
  id: EventId
  /** The workspaces that the caller can read. */
  workspaceIds: readonly WorkspaceId[]
  plan: Plan
  hotSinceMs: number
}

type EventReads = {
  db: Queryable
  archive: ObjectStore
  cache: ColdCache
  /** Takes a permit to read the archive. Throws if too many requests do. */
  takeArchiveRead: () => Disposable
  /** Aborting it cancels archive reads. */
  signal: AbortSignal
}

const RESTORE_RETRY_SECONDS = 300

/** Returns a hot event. An event that is no longer hot requires a plan with exports, wherever it is stored. */
export async function getEventById(deps: EventReads, request: EventRequest): Promise<SealedEvent> {
  // The archiver deletes events only after the catalog lists them, so look in the table first.
  const stored = await findStored(deps, request)
  if (stored && stored.receivedAtMs >= request.hotSinceMs) return stored
  const event = stored ?? (await findArchived(deps, request))
  if (event === null) throw new ApiError('not_found')
  if (!hasExports(request.plan)) throw new ApiError('plan_required', { message: PLAN_MESSAGE })
  return event
}

const PLAN_MESSAGE =
  'This event is archived. Reading archived events requires a plan with exports. Upgrade the plan.'

async function findStored(
  { db }: EventReads,
  { id, workspaceIds }: EventRequest,
): Promise<SealedEvent | null> {
  for (const workspaceId of workspaceIds) {
    const event = await findStoredEvent(db, { workspaceId, id })
    if (event) return event
  }
  return null
}

async function findArchived(
  { db, archive, cache, takeArchiveRead, signal }: EventReads,
  { id, workspaceIds, plan }: EventRequest,
): Promise<SealedEvent | null> {
  for (const workspaceId of workspaceIds) {
    const segment = await findSegmentOfId(db, { workspaceId, id })
    // The time in an id is never earlier than the receipt of its event.
    if (segment === null || segment.minReceivedAtMs > idTimeMs(id)) continue
    using _permit = takeArchiveRead()
    try {
      const event = await findInSegment({ archive, cache, signal }, segment, id)
      if (event) return event
    } catch (error) {
      if (!(error instanceof SegmentColdError)) throw error
      // Without its file, it is unknown whether the event exists. The response is the same in both cases.
      if (!hasExports(plan)) throw new ApiError('plan_required', { message: PLAN_MESSAGE })
      await archive.restore(segment.objectKey, signal)
      throw new ApiError('archive_restoring', { retryAfterSeconds: RESTORE_RETRY_SECONDS })
    }
  }
  return null
}
