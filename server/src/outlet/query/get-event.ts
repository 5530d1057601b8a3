import { ApiError } from '../../errors.ts'
import type { EventId, SealedEvent } from '../../ledger/event.ts'
import { findStoredEvent } from '../../ledger/find-event-store.ts'
import {
  archiveRefusal,
  archiveRestoring,
  isSegmentFault,
  storageTimeout,
} from '../../ledger/segment/archive-refusal.ts'
import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import { findInSegment, SegmentColdError } from '../../ledger/segment/cold-reader.ts'
import { requestRestores } from '../../ledger/segment/restore.ts'
import { listSegmentsOfId, type Segment } from '../../ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { hasExports, type Plan } from '../../tenancy/plans.ts'

type EventRequest = {
  id: EventId
  plan: Plan
  hotSinceMs: number
}

/** An event in the table, or the segments that can contain it. */
export type EventLocation = { stored: SealedEvent | null; segments: readonly Segment[] }

type EventReads = {
  archive: ObjectStore
  cache: ColdCache
  /** Waits for a permit to read the archive. */
  acquireArchiveRead: () => Promise<Disposable>
  /** Limits the archive reads together, and then the check of each segment that has to be restored. */
  archiveMs: number
  /** Aborting it cancels archive reads. */
  signal: AbortSignal
}

/** A company can have 101 workspaces, each with a segment that can contain the id. */
const SEGMENTS_AT_ONCE = 4

/** `workspaceIds` are the workspaces that the caller can read. Doesn't read the archive. */
export async function locateEvent(
  db: Queryable,
  wanted: { id: EventId; workspaceIds: readonly WorkspaceId[] },
): Promise<EventLocation> {
  // The archiver deletes events only after the catalog lists them, so look in the table first.
  const stored = await findStoredEvent(db, wanted)
  return { stored, segments: stored ? [] : await listSegmentsOfId(db, wanted) }
}

/**
 * Returns the event. If it is no longer hot, this requires a plan with exports, wherever it is stored. Doesn't
 * use the database. Without such a plan, it doesn't read the archive either, so it is unknown whether the event
 * exists, and the response is the same for all ids in the range of the company's own segments.
 */
export async function readLocatedEvent(
  deps: EventReads,
  { stored, segments }: EventLocation,
  request: EventRequest,
): Promise<SealedEvent> {
  if (stored && stored.receivedAtMs >= request.hotSinceMs) return stored
  if (stored === null && segments.length === 0) throw new ApiError('not_found')
  if (!hasExports(request.plan)) {
    throw new ApiError('plan_required', {
      message:
        'Events from the time of this ID are archived. Reading archived events requires a plan with exports. Upgrade the plan.',
    })
  }
  const event = stored ?? (await findArchived(deps, segments, request.id))
  if (event === null) throw new ApiError('not_found')
  return event
}

async function findArchived(
  deps: EventReads,
  segments: readonly Segment[],
  id: EventId,
): Promise<SealedEvent | null> {
  using _permit = await deps.acquireArchiveRead()
  const { archive, archiveMs: timeoutMs } = deps
  const giveUp = new AbortController()
  const signal = AbortSignal.any([deps.signal, giveUp.signal])
  try {
    const search = findInSegments({ ...deps, signal }, segments, id)
    const { event, cold } = await withDeadline(search, {
      timeoutMs,
      late: () => storageTimeout(timeoutMs),
    })
    if (event !== null || cold.length === 0) return event
    await requestRestores(archive, cold, { checkMs: timeoutMs, signal })
  } catch (error) {
    throw archiveRefusal(error)
  } finally {
    giveUp.abort()
  }
  throw archiveRestoring()
}

/**
 * Also returns the segments that have to be restored before they can be searched. A file that is missing or
 * damaged only matters if no other contains the event.
 */
async function findInSegments(
  deps: Pick<EventReads, 'archive' | 'cache' | 'signal'>,
  segments: readonly Segment[],
  id: EventId,
): Promise<{ event: SealedEvent | null; cold: Segment[] }> {
  const left = segments.values()
  const found: SealedEvent[] = []
  const cold: Segment[] = []
  const faults: Error[] = []
  const searchRemaining = async (): Promise<void> => {
    for (const segment of left) {
      try {
        const event = await findInSegment(deps, segment, id)
        if (event) found.push(event)
      } catch (error) {
        if (error instanceof SegmentColdError) cold.push(segment)
        else if (isSegmentFault(error)) faults.push(error)
        else throw error
      }
      if (found.length > 0) return
    }
  }
  await Promise.all(Array.from({ length: SEGMENTS_AT_ONCE }, searchRemaining))
  const [event = null] = found
  const [fault] = faults
  if (event === null && fault) throw fault
  return { event, cold }
}
