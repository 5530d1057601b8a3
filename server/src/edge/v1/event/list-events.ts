import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { type EventQuery, queryEvents } from '../../../outlet/query/query-events.ts'
import type { Clock, MonotonicClock } from '../../../platform/time/clock.ts'
import type { CursorCodec } from '../../../platform/cursor.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'
import { hotSinceMsOf } from '../../../tenancy/plans.ts'
import type { Principal } from '../../../tenancy/principal.ts'
import { listCustomerWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { eventRecordJson } from '../../../ledger/event-record.ts'
import type { ChainReads } from '../../../ledger/replica/chain-reads.ts'
import { readCompleteSinceMs } from '../../../ledger/segment/segment-store.ts'
import { defineRoute } from '../../define-route.ts'
import { invalidParameterError } from '../../event/event-filter-input.ts'
import { readListInput } from '../../event/event-list-input.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { asJsonText, joinRecords } from '../../page-json.ts'
import { EVENT_QUERY, traceRead } from '../../trace.ts'
import type { RequestSlots } from '../../http/request-slots.ts'
import { EventFilterQuery, EventPage } from '../../schema/event.ts'
import { getKeyWorkspace } from '../../workspace-resource.ts'

export type ListEventsDeps = {
  slots: RequestSlots
  db: Queryable
  /** Where events are read from. */
  reads: ChainReads
  cursors: CursorCodec
  clock: Clock
  monotonic: MonotonicClock
}

const LIMIT_DEFAULT = 50

/** GET /v1/events: hot events of the key's workspace or company. */
export const listEvents = defineRoute({
  method: 'GET',
  path: '/v1/events',
  key: { permission: 'events:read' },
  before: () => refuseWorkspaceFilter,
  config: { hasLargeResponses: true, isSearch },
  summary: 'List events',
  description:
    'Returns hot events, by default newest first, by `timestamp` and then by `id`. All filters must match. The `x-hot-since` header says since when the query finds all events that Annals received. A cursor is only valid for the same tenant, filters and order. Follow `nextCursor` until it is null: a page can have fewer events than `limit`, or even none, although more follow.',
  query: EventFilterQuery,
  errors: ['not_found'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(EventPage),
  handle: (deps: ListEventsDeps) => async (request, reply) => {
    const { principal, query } = request
    const gone = disconnectSignal(reply)
    refuseSeqOfCompany(principal, query)
    const list = readListInput(query)
    const hotSinceMs = hotSinceMsOf(principal.plan, deps.clock())
    const where = await readableWorkspaces(deps.db, principal, query.workspaceId)
    const eventQuery: EventQuery = {
      companyId: principal.companyId,
      ...where,
      ...list,
      hotSinceMs,
      cursor: query.cursor ?? null,
      limit: query.limit ?? LIMIT_DEFAULT,
      // A search would keep slots for long.
      tryTakeRead: () => (isSearch(request) ? null : deps.slots.tryTake(principal.companyId)),
      mayContinue: () => !deps.slots.isCrowded && !gone.aborted,
      monotonic: deps.monotonic,
    }
    const read = () => queryEvents(deps.reads, deps.cursors, eventQuery)
    const page = await traceRead(request, EVENT_QUERY, read)
    // Read after the events, so that it covers those that were archived before they could be read.
    const sinceMs = await readCompleteSinceMs(deps.db, where.workspaceIds, hotSinceMs)
    const records = await joinRecords(page.events, eventRecordJson, principal.companyId)
    asJsonText(reply).header('x-hot-since', formatUtcMs(sinceMs))
    return `{"data":[${records}],"nextCursor":${JSON.stringify(page.nextCursor)}}`
  },
})

const SEARCHES: ReadonlySet<string> = new Set([
  'metadata',
  'hasMetadata',
  'actorRole',
  'traceId',
  'q',
])

/** Whether events are compared with more than the fields that have an index. */
function isSearch({ query }: Pick<FastifyRequest, 'query'>): boolean {
  return (
    typeof query === 'object' &&
    query !== null &&
    Object.keys(query).some((name) => SEARCHES.has(name))
  )
}

/** Runs before validation, because a wrong scope takes precedence over other errors in the query. */
async function refuseWorkspaceFilter({ principal, query }: FastifyRequest): Promise<void> {
  const isNamed = typeof query === 'object' && query !== null && 'workspaceId' in query
  if (principal.scope === 'COMPANY' || !isNamed) return
  throw new ApiError('insufficient_scope', {
    message:
      'The workspaceId filter requires a company key. This key only sees its own workspace, so omit the filter.',
  })
}

/** Each workspace has its own chain, so a sequence number says nothing about the whole company. */
function refuseSeqOfCompany(
  { scope }: Principal,
  { seqFrom, seqTo, workspaceId }: { seqFrom?: number; seqTo?: number; workspaceId?: string },
): void {
  if (scope === 'WORKSPACE' || workspaceId !== undefined) return
  if (seqFrom === undefined && seqTo === undefined) return
  throw invalidParameterError('workspaceId', 'is required with seqFrom and seqTo')
}

async function readableWorkspaces(
  db: Queryable,
  principal: Principal,
  named: string | undefined,
): Promise<Pick<EventQuery, 'workspaceId' | 'workspaceIds'>> {
  if (principal.scope === 'WORKSPACE') return onlyWorkspace(principal.workspaceId)
  if (named === undefined) {
    const workspaceIds = await listCustomerWorkspaces(db, principal.companyId)
    return { workspaceId: null, workspaceIds }
  }
  return onlyWorkspace((await getKeyWorkspace(db, principal, named)).id)
}

function onlyWorkspace(workspaceId: WorkspaceId) {
  return { workspaceId, workspaceIds: [workspaceId] }
}
