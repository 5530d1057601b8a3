import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { eventRecordJson } from '../../ledger/event-record.ts'
import type { FeedWaits } from '../../outlet/feed/feed-waits.ts'
import { type FeedReads, readFeed } from '../../outlet/feed/read-feed.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { FairSemaphore, QueueFullError } from '../../platform/scheduling/fair-semaphore.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { hotSinceMsOf } from '../../tenancy/plans.ts'
import { readmit } from '../auth/key-access.ts'
import type { CachedKey } from '../auth/key-cache.ts'
import type { KeyGuard } from '../auth/require-key.ts'
import { defineRoute } from '../define-route.ts'
import type { ExportRouteDeps } from '../export/export-resource.ts'
import { disconnectSignal } from '../http/disconnect-signal.ts'
import type { RequestSlots } from '../http/request-slots.ts'
import { asJsonText, joinRecords } from '../page-json.ts'
import { WorkspaceParams } from '../schema/common.ts'
import { EventFeed, FeedQuery } from '../schema/event.ts'
import { getKeyWorkspace } from '../workspace-resource.ts'

export type GetFeedDeps = Pick<
  ExportRouteDeps,
  'db' | 'clock' | 'exports' | 'coldCache' | 'keyAccess'
> & { keyGuard: KeyGuard; slots: RequestSlots; feedWaits: FeedWaits }

const LIMIT_DEFAULT = 100
/** Reads of the archive, which hold no connection. */
const COLD_READS = {
  permitsMax: 4,
  permitsPerCompanyMax: 2,
  waitingMax: 200,
  waitingPerCompanyMax: 50,
  waitMsMax: 10_000,
}

/** GET /v1/workspaces/{workspaceId}/feed: the events of a chain in order, and new ones as they arrive. */
export const getFeed = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/feed',
  key: { permission: 'events:read' },
  config: { hasOwnLimits: true, hasLargeResponses: true },
  summary: 'Follow the log',
  description:
    'Returns the events of a workspace after a sequence number, in the order of the chain, without gaps and without repeats. To follow the log, store `next` together with the events, and send it as `after` in the next request. With `waitSeconds`, a request at the end of the chain waits for new events; if none arrive, `data` is empty. A page can have fewer events than `limit` although more follow. Archived events require a plan with exports, otherwise the response is 403 `plan_required` and names the `after` of the first event that is not archived. A key can have 10 waiting requests.',
  params: WorkspaceParams,
  query: FeedQuery,
  errors: ['plan_required', 'archive_restoring'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(EventFeed),
  handle: (deps: GetFeedDeps, app) => {
    const coldReads = new FairSemaphore(COLD_READS)
    app.addHook('preClose', async () => deps.feedWaits.close())
    return async (request, reply) => {
      const { after = 0, limit = LIMIT_DEFAULT, waitSeconds = 0 } = request.query
      const { companyId } = request.principal
      const gone = disconnectSignal(reply)
      const page = { after, limit, workspaceId: request.params.workspaceId }
      const waitMs = waitSeconds * 1_000
      const events = await withRowOwner(companyId, () =>
        followFeed({ deps, coldReads, request, gone }, page, waitMs),
      )
      const records = await joinRecords(events, eventRecordJson, companyId)
      asJsonText(reply)
      return `{"data":[${records}],"next":${events.at(-1)?.seq ?? after}}`
    }
  },
})

type FeedCall = {
  deps: GetFeedDeps
  coldReads: FairSemaphore
  request: FastifyRequest
  /** Aborts when the client disconnects. */
  gone: AbortSignal
}

/** Reads the next page. If it is empty, waits for events and reads again. */
async function followFeed(
  call: FeedCall,
  { after, limit, workspaceId: named }: { after: number; limit: number; workspaceId: string },
  waitMs: number,
): Promise<SealedEvent[]> {
  const { deps, request } = call
  const { companyId, keyId } = request.principal
  const endsAtMs = performance.now() + waitMs
  const reads = feedReads(call)
  const workspaceId = await findWorkspace(call, reads.acquire, named)
  using listener = deps.feedWaits.listen({ companyId, keyId, workspaceId })
  for (;;) {
    const { plan } = request.principal
    const hotSinceMs = hotSinceMsOf(plan, deps.clock())
    const events = await readFeed(reads, { workspaceId, after, limit, plan, hotSinceMs })
    if (events.length > 0 || waitMs === 0) return events
    using access = watchAccess(call, workspaceId)
    const left = { waitMs: endsAtMs - performance.now(), signal: access.signal }
    if (!(await deps.feedWaits.wait(listener, { afterSeq: after, ...left }))) return []
    await deps.keyGuard.recheck(request)
  }
}

function feedReads({ deps, coldReads, request, gone }: FeedCall): FeedReads {
  const { companyId, keyId } = request.principal
  const { database, archive, timeouts } = deps.exports
  return {
    database,
    archive,
    cache: deps.coldCache,
    acquire: () => deps.slots.take(companyId, gone, keyId),
    acquireCold: () => coldReads.take(companyId, gone, keyId).catch(refuseFullQueue),
    checkMs: timeouts.checkMs,
    signal: gone,
  }
}

function refuseFullQueue(error: unknown): never {
  if (!(error instanceof QueueFullError)) throw error
  throw new ApiError('overloaded', {
    message:
      'Too many requests read archived events. Retry after the delay in the Retry-After header.',
    cause: error,
  })
}

async function findWorkspace(
  { deps: { db }, request }: FeedCall,
  acquire: () => Promise<Disposable>,
  named: string,
): Promise<WorkspaceId> {
  using _slot = await acquire()
  return (await getKeyWorkspace(db, request.principal, named)).id
}

/** The signal aborts with what the next call would get when the key loses its access, until disposed of. */
function watchAccess(
  { deps, request, gone }: FeedCall,
  workspaceId: WorkspaceId,
): Disposable & { signal: AbortSignal } {
  const { key, clientAddress: address, gate } = request
  const lost = new AbortController()
  const check = (current: CachedKey | null) => {
    const { workspaceId: own } = readmit(current, { address, gate, nowMs: deps.clock() })
    if (own !== null && own !== workspaceId) throw new ApiError('not_found')
  }
  const watch = deps.keyAccess.watch(key.kid, check, (reason) => lost.abort(reason))
  return {
    signal: AbortSignal.any([gone, lost.signal]),
    [Symbol.dispose]: () => watch[Symbol.dispose](),
  }
}
