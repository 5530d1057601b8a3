import { Type } from 'typebox'
import { listWebhooksOf } from '../../../outlet/webhook/webhook-store.ts'
import type { Webhook } from '../../../outlet/webhook/webhook.ts'
import { assertId } from '../../../platform/id.ts'
import { visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText, listJson } from '../../page-json.ts'
import { DashboardWebhookList, DashboardWebhookQuery } from '../../schema/dashboard/webhooks.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { dashboardWebhook } from './visible-webhook.ts'

/** A company can have 5,000 webhooks with filters and URLs of kilobytes. */
const LIMIT = 100

/** GET /dashboard/webhooks: those of one workspace, or of all that the member can see. */
export const listDashboardWebhooks = defineRoute({
  method: 'GET',
  path: '/dashboard/webhooks',
  member: 'webhooks.read',
  summary: 'List webhooks',
  description: `Returns the webhooks of the workspaces that the member can see, up to ${LIMIT} per page. A cursor is only valid for the same member and \`workspaceId\`.`,
  query: DashboardWebhookQuery,
  errors: ['not_found'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(DashboardWebhookList),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'cursors'>) =>
    async ({ viewer, query }, reply) => {
      const { companyId, userId } = viewer
      const binding = `webhooks/${userId}/${query.workspaceId ?? 'all'}`
      const position = deps.cursors.read(query.cursor, binding)
      const webhooks = await readOrReportDrift(reply, [], async () => {
        const { workspaceIds } = await visibleWorkspaces(deps.db, viewer, query.workspaceId)
        const after = position === null ? null : parsePosition(position)
        // One more than returned shows whether there is another page.
        return await listWebhooksOf(deps.db, { companyId, workspaceIds, after, limit: LIMIT + 1 })
      })
      const page = webhooks.slice(0, LIMIT)
      const last = webhooks.length > LIMIT ? page.at(-1) : undefined
      const nowMs = deps.clock()
      asJsonText(reply)
      return await listJson('webhooks', page, {
        record: (webhook) => dashboardWebhook(webhook, nowMs),
        owner: companyId,
        rest: { nextCursor: last ? deps.cursors.encode(positionText(last), binding) : null },
      })
    },
})

type Position = Pick<Webhook, 'workspaceId' | 'id'>

function positionText({ workspaceId, id }: Position): string {
  return `${workspaceId}/${id}`
}

function parsePosition(text: string): Position {
  const [workspaceId = '', id = ''] = text.split('/')
  return { workspaceId: assertId(workspaceId), id: assertId(id) }
}
