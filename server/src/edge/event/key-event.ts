import { ApiError } from '../../errors.ts'
import type { EventId, SealedEvent } from '../../ledger/event.ts'
import { type EventLocation, locateEvent, readLocatedEvent } from '../../outlet/query/get-event.ts'
import { parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { hotSinceMsOf } from '../../tenancy/plans.ts'
import type { Principal } from '../../tenancy/principal.ts'
import { listKeyWorkspaces } from '../../tenancy/workspace/workspace-store.ts'
import type { ArchiveReadLimiter } from '../archive-read-limiter.ts'
import { hiddenWorkspaceOf } from '../auth/gate.ts'
import type { ExportRouteDeps } from '../export/export-resource.ts'
import type { RequestSlots } from '../http/request-slots.ts'

export type GetEventDeps = Pick<ExportRouteDeps, 'db' | 'clock' | 'exports' | 'coldCache'> & {
  slots: RequestSlots
}

type EventCall = {
  principal: Principal
  archiveReads: ArchiveReadLimiter
  /** Aborts when the client disconnects. */
  disconnected: AbortSignal
}

/** The event that a request names. An unknown id, another tenant's and an invalid one get the same 404. */
export async function readKeyEvent(
  deps: GetEventDeps,
  call: EventCall,
  named: string,
): Promise<SealedEvent> {
  const id = parseId<'event'>(named)
  if (id === null) throw new ApiError('not_found')
  return await withRowOwner(call.principal.companyId, () => readEvent(deps, call, id))
}

async function readEvent(deps: GetEventDeps, call: EventCall, id: EventId): Promise<SealedEvent> {
  const { principal, archiveReads, disconnected } = call
  const { companyId, keyId, plan } = principal
  const location = await findLocation(deps, call, id)
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

async function findLocation(
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
