import { Type } from 'typebox'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { eventTypePageJson, NO_TYPES_JSON } from '../../event/event-type-page.ts'
import { compressResponse } from '../../http/compress-response.ts'
import { asJsonText } from '../../page-json.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { EventTypePage, EventTypeQuery } from '../../schema/event-type.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'

/** GET /dashboard/workspaces/{workspaceId}/event-types: by category and action. */
export const listDashboardEventTypes = defineRoute({
  method: 'GET',
  path: '/dashboard/workspaces/:workspaceId/event-types',
  member: 'events.read',
  config: { hasLargeResponses: true },
  options: {
    onSend: compressResponse,
  },
  summary: 'List event types',
  description:
    'Returns the types of the events of the workspace, by category and action. A cursor is only valid for the same member, workspace and filters. Follow `nextCursor` until it is null: if types have many keys, a page can have fewer types than `limit`, although more follow.',
  params: WorkspaceParams,
  query: EventTypeQuery,
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(EventTypePage),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'cursors' | 'clock'>) =>
    async ({ viewer, params, query }, reply) => {
      const { companyId, userId: reader } = viewer
      const page = await readOrReportDrift(reply, NO_TYPES_JSON, async () => {
        const workspaceId = await visibleWorkspace(deps.db, viewer, params.workspaceId)
        return await eventTypePageJson(deps, { companyId, workspaceId, reader, query })
      })
      asJsonText(reply)
      return page
    },
})
