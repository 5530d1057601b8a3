import { Type } from 'typebox'
import { exploreEvents } from '../../../outlet/explorer/explore-events.ts'
import { defineRoute } from '../../define-route.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { ViewParams, ViewRunInput } from '../../schema/dashboard/views.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { ExplorerPage } from '../explorer/explorer-query.ts'
import { explorerPageJson, NO_EVENTS } from '../explorer/explorer-page.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { refuseUnusable } from '../stored-input.ts'
import { exploreView } from './view-input.ts'
import { getVisibleView, readStoredQuery } from './view-resource.ts'

const LIMIT_DEFAULT = 50

/** POST /dashboard/explorer/views/{viewId}/run: returns a page of events that the member can see. */
export const runExplorerView = defineRoute({
  method: 'POST',
  path: '/dashboard/explorer/views/:viewId/run',
  member: 'events.read',
  config: { hasOwnLimits: true, hasLargeResponses: true },
  summary: 'Run a view',
  description:
    "Returns the same page as `GET /dashboard/events` with the view's query, for the workspaces that the signed-in member can see.",
  params: ViewParams,
  body: ViewRunInput,
  isBodyOptional: true,
  errors: ['invalid_cursor', 'conflict'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(ExplorerPage),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'monotonic' | 'searches' | 'cursors'>) =>
    async ({ viewer, params, body }, reply) => {
      const view = await getVisibleView(deps.db, viewer, params.viewId)
      const query = readStoredQuery(view.query)
      refuseUnusable('view', query)
      const binding = `view/${viewer.userId}/${view.id}`
      const position = deps.cursors.read(body.cursor, binding)
      const { ranAtMs, cursor } =
        position === null ? { ranAtMs: deps.clock(), cursor: null } : parsePosition(position)
      const options = { workspaceId: view.workspaceId, query: query.value }
      const explored = await exploreView(deps, viewer, options, ranAtMs)
      const page = await readOrReportDrift(reply, NO_EVENTS, () =>
        exploreEvents(deps.searches, deps.cursors, {
          userId: viewer.userId,
          ...explored,
          signal: disconnectSignal(reply),
          monotonic: deps.monotonic,
          sort: query.value.sort ?? 'timestamp',
          cursor,
          limit: body.limit ?? LIMIT_DEFAULT,
        }),
      )
      const next = page.nextCursor && deps.cursors.encode(`${ranAtMs}/${page.nextCursor}`, binding)
      return await explorerPageJson(deps.db, reply, { ...page, nextCursor: next }, explored)
    },
})

/** Reads the explorer's cursor and the time of the first page, so that a relative range stays fixed. */
function parsePosition(text: string): { ranAtMs: number; cursor: string } {
  const [ms = '', cursor = ''] = text.split('/')
  return { ranAtMs: Number(ms), cursor }
}
