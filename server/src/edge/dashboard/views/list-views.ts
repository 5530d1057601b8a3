import { Type } from 'typebox'
import { viewStore } from '../../../outlet/saved/view-store.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText, listJson } from '../../page-json.ts'
import { ViewList } from '../../schema/dashboard/views.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { viewRecord } from './view-resource.ts'

/** GET /dashboard/explorer/views: the member's own, and those shared with workspaces that they can see. */
export const listExplorerViews = defineRoute({
  method: 'GET',
  path: '/dashboard/explorer/views',
  member: 'events.read',
  summary: 'List views',
  description: "Returns the member's own views and the views that are shared with them, by name.",
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(ViewList),
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer }, reply) => {
      const views = await listOrReportDrift(reply, () => viewStore.list(deps.db, viewer))
      asJsonText(reply)
      return await listJson('views', views, {
        record: (view) => viewRecord(viewer, view),
        owner: viewer.companyId,
      })
    },
})
