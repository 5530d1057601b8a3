import { Type } from 'typebox'
import { ApiError } from '../../errors.ts'
import { eventRecordJson } from '../../ledger/event-record.ts'
import { getEventById } from '../../outlet/query/get-event.ts'
import { type CompanyId, parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { FairSemaphore } from '../../platform/scheduling/fair-semaphore.ts'
import { hotSinceMsOf } from '../../tenancy/plans.ts'
import type { Principal } from '../../tenancy/principal.ts'
import { listKeyWorkspaces } from '../../tenancy/workspace-store.ts'
import { hiddenWorkspaceOf } from '../auth/gate.ts'
import { defineRoute } from '../define-route.ts'
import type { ExportRouteDeps } from '../export/export-resource.ts'
import { disconnectSignal } from '../http/disconnect-signal.ts'
import { asJsonText } from '../page-json.ts'
import { EventParams, EventRecord } from '../schema/event.ts'

type GetEventDeps = Pick<ExportRouteDeps, 'db' | 'clock' | 'exports' | 'coldCache'>

/**
 * A request that reads the archive keeps its database slot meanwhile. So only a few can, and storage that
 * hangs leaves slots for other requests of the company and of other companies.
 */
const ARCHIVE_READS = {
  permitsMax: 4,
  permitsPerCompanyMax: 2,
  waitingMax: 0,
  waitingPerCompanyMax: 0,
}

/** GET /v1/events/{eventId}: one event, hot or archived. */
export const getEvent = defineRoute({
  method: 'GET',
  path: '/v1/events/:eventId',
  key: { permission: 'events:read' },
  summary: 'Get an event',
  description:
    'Returns an event that the key can read. With a company key that has the `audit` permission, this includes events of the system workspace. An event that is no longer hot requires a plan with exports, otherwise the response is 403 `plan_required`. If its archive file has to be restored first, the response is 503 `archive_restoring`, and the restore is requested. If the file is missing or damaged, it is 503 `unavailable`.',
  params: EventParams,
  errors: ['plan_required', 'archive_restoring'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(EventRecord),
  handle: (deps: GetEventDeps) => {
    const archiveReads = new FairSemaphore(ARCHIVE_READS)
    return async ({ principal, params }, reply) => {
      const id = parseId<'event'>(params.eventId)
      if (id === null) throw new ApiError('not_found')
      const { companyId, plan } = principal
      const request = {
        id,
        plan,
        workspaceIds: await listReadable(deps.db, principal),
        hotSinceMs: hotSinceMsOf(plan, deps.clock()),
      }
      const reads = {
        db: deps.db,
        archive: deps.exports.archive,
        archiveMs: deps.exports.timeouts.checkMs,
        cache: deps.coldCache,
        takeArchiveRead: () => takeArchiveRead(archiveReads, companyId),
        signal: disconnectSignal(reply),
      }
      const event = await getEventById(reads, request)
      asJsonText(reply)
      return eventRecordJson(event)
    }
  },
})

async function listReadable(db: Queryable, principal: Principal): Promise<WorkspaceId[]> {
  const { workspaceId } = principal
  const workspaces =
    workspaceId === null ? await listKeyWorkspaces(db, principal) : [{ id: workspaceId }]
  const hidden = hiddenWorkspaceOf(principal)
  return workspaces.map(({ id }) => id).filter((id) => id !== hidden)
}

function takeArchiveRead(reads: FairSemaphore, companyId: CompanyId): Disposable {
  const permit = reads.tryTake(companyId)
  if (permit) return permit
  throw new ApiError('overloaded', {
    message:
      'Too many requests are reading archived events. Retry after the delay in the Retry-After header.',
  })
}
