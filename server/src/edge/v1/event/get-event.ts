import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { EventId, SealedEvent } from '../../../ledger/event.ts'
import { eventRecordJson } from '../../../ledger/event-record.ts'
import {
  type EventLocation,
  locateEvent,
  readLocatedEvent,
} from '../../../outlet/query/get-event.ts'
import { parseId, type WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { withRowOwner } from '../../../platform/scheduling/row-cost.ts'
import { hotSinceMsOf } from '../../../tenancy/plans.ts'
import type { Principal } from '../../../tenancy/principal.ts'
import { listKeyWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { ArchiveReadLimiter } from '../../archive-read-limiter.ts'
import { hiddenWorkspaceOf } from '../../auth/gate.ts'
import { defineRoute } from '../../define-route.ts'
import type { ExportRouteDeps } from '../../export/export-resource.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import type { RequestSlots } from '../../http/request-slots.ts'
import { asJsonText } from '../../page-json.ts'
import { EventParams, EventRecord } from '../../schema/event.ts'

type GetEventDeps = Pick<ExportRouteDeps, 'db' | 'clock' | 'exports' | 'coldCache'> & {
  slots: RequestSlots
}

type EventCall = {
  principal: Principal
  archiveReads: ArchiveReadLimiter
  /** Aborts when the client disconnects. */
  disconnected: AbortSignal
}

/** GET /v1/events/{eventId}: one event, hot or archived. */
export const getEvent = defineRoute({
  method: 'GET',
  path: '/v1/events/:eventId',
  key: { permission: 'events:read' },
  config: { hasOwnLimits: true },
  summary: 'Get an event',
  description:
    'Returns an event that the key can read. With a company key that has the `audit` permission, this includes events of the system workspace. An event that is no longer hot requires a plan with exports, otherwise the response is 403 `plan_required`, also for unknown IDs from the time of archived events. If its archive file has to be restored first, the response is 503 `archive_restoring`, and the restore is requested. If the file is missing or damaged, it is 503 `unavailable`.',
  params: EventParams,
  errors: ['plan_required', 'archive_restoring'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(EventRecord),
  handle: (deps: GetEventDeps) => {
    const archiveReads = new ArchiveReadLimiter()
    return async ({ principal, params }, reply) => {
      const id = parseId<'event'>(params.eventId)
      if (id === null) throw new ApiError('not_found')
      const call = { principal, archiveReads, disconnected: disconnectSignal(reply) }
      const event = await withRowOwner(principal.companyId, () => readEvent(deps, call, id))
      asJsonText(reply)
      return eventRecordJson(event)
    }
  },
})

async function readEvent(deps: GetEventDeps, call: EventCall, id: EventId): Promise<SealedEvent> {
  const { principal, archiveReads, disconnected } = call
  const { companyId, keyId, plan } = principal
  const location = await locate(deps, call, id)
  const reads = {
    archive: deps.exports.archive,
    archiveMs: deps.exports.timeouts.checkMs,
    cache: deps.coldCache,
    acquireArchiveRead: () => archiveReads.take({ companyId, callerId: keyId }, disconnected),
    signal: disconnected,
  }
  const hotSinceMs = hotSinceMsOf(plan, deps.clock())
  return await readLocatedEvent(reads, location, { id, plan, hotSinceMs })
}

async function locate(
  { db, slots }: GetEventDeps,
  { principal, disconnected }: EventCall,
  id: EventId,
): Promise<EventLocation> {
  using _slot = await slots.take(principal.companyId, disconnected, principal.keyId)
  return await locateEvent(db, { id, workspaceIds: await listReadableWorkspaces(db, principal) })
}

async function listReadableWorkspaces(db: Queryable, principal: Principal): Promise<WorkspaceId[]> {
  const { workspaceId } = principal
  const workspaces =
    workspaceId === null ? await listKeyWorkspaces(db, principal) : [{ id: workspaceId }]
  const hidden = hiddenWorkspaceOf(principal)
  return workspaces.map(({ id }) => id).filter((id) => id !== hidden)
}
