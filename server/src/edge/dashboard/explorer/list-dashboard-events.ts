import { Type } from 'typebox'
import { exploreEvents } from '../../../outlet/explorer/explore-events.ts'
import { defineRoute } from '../../define-route.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { compressResponse } from '../../http/compress-response.ts'
import { EVENT_QUERY, traceRead } from '../../trace.ts'
import { CursorQuery, STRICT, TIME_RANGE } from '../../schema/common.ts'
import { SortChoice } from '../../schema/search.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { explorerPageJson, NO_EVENTS } from './explorer-page.ts'
import { EXPLORED_FILTERS, EXPLORED_TRACE, ExplorerPage, readExplored } from './explorer-query.ts'

const LIMIT_DEFAULT = 50

const ExplorerQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 10,
        maximum: 200,
        default: 50,
        description: 'The maximum number of events per page.',
      }),
    ),
    cursor: Type.Optional(CursorQuery),
    sort: Type.Optional({ ...SortChoice, default: 'timestamp' }),
    ...TIME_RANGE,
    ...EXPLORED_FILTERS,
    ...EXPLORED_TRACE,
  },
  STRICT,
)

/** GET /dashboard/events: hot events that the member can see, newest first. */
export const listDashboardEvents = defineRoute({
  method: 'GET',
  path: '/dashboard/events',
  member: 'events.read',
  config: { hasOwnLimits: true, hasLargeResponses: true },
  options: {
    onSend: compressResponse,
  },
  summary: 'List events',
  description:
    'Returns hot events, by default newest first by `timestamp` and then by `id`. A cursor is only valid for the same member, workspaces, filters and order. Follow `nextCursor` until it is null: a page can have fewer events than `limit`, or even none, although more follow.',
  query: ExplorerQuery,
  errors: ['not_found'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(ExplorerPage),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'monotonic' | 'searches' | 'cursors'>) =>
    async (request, reply) => {
      const { viewer, query } = request
      const { limit, cursor, sort, ...input } = query
      const explored = await readExplored(deps, viewer, input)
      const read = () =>
        exploreEvents(deps.searches, deps.cursors, {
          userId: viewer.userId,
          ...explored,
          signal: disconnectSignal(reply),
          monotonic: deps.monotonic,
          sort: sort ?? 'timestamp',
          cursor: cursor ?? null,
          limit: limit ?? LIMIT_DEFAULT,
        })
      const page = await readOrReportDrift(reply, NO_EVENTS, () =>
        traceRead(request, EVENT_QUERY, read),
      )
      return await explorerPageJson(deps.db, reply, page, explored)
    },
})
