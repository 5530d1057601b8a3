import { Type } from 'typebox'
import type { CursorCodec } from '../../../platform/cursor.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import { defineRoute } from '../../define-route.ts'
import { eventTypePageJson } from '../../event/event-type-page.ts'
import { asJsonText } from '../../page-json.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { EventTypePage, EventTypeQuery } from '../../schema/event-type.ts'
import { getKeyWorkspace } from '../../workspace-resource.ts'

/** GET /v1/workspaces/{workspaceId}/event-types: by category and action. */
export const listEventTypes = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/event-types',
  key: { permission: 'events:read' },
  config: { hasLargeResponses: true },
  summary: 'List event types',
  description:
    'Returns the combinations of category and action that the events of the workspace have, by category and then by action, with the keys of their metadata. Annals learns them from the events in the background, usually within seconds. A key that appears after the first 10 events of a type, or one whose values get another JSON type, is reported as drift. A cursor is only valid for the same workspace and filters. Follow `nextCursor` until it is null: if types have many keys, a page can have fewer types than `limit`, although more follow.',
  params: WorkspaceParams,
  query: EventTypeQuery,
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(EventTypePage),
  handle:
    (deps: { db: Queryable; cursors: CursorCodec; clock: Clock }) =>
    async ({ principal, params, query }, reply) => {
      const { companyId } = principal
      const { id: workspaceId } = await getKeyWorkspace(deps.db, principal, params.workspaceId)
      const page = await eventTypePageJson(deps, { companyId, workspaceId, query })
      asJsonText(reply)
      return page
    },
})
