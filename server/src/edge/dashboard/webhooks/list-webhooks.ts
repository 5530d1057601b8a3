import { listWorkspaceWebhooks } from '../../../outlet/webhook/webhook-store.ts'
import { visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { DashboardWebhookList, DashboardWebhookQuery } from '../../schema/dashboard/webhooks.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { dashboardWebhook } from './visible-webhook.ts'

/** GET /dashboard/webhooks: those of one workspace, or of all that the member can see. */
export const listDashboardWebhooks = defineRoute({
  method: 'GET',
  path: '/dashboard/webhooks',
  member: 'webhooks.read',
  summary: 'List webhooks',
  description: 'Returns the webhooks of the workspaces that the member can see.',
  query: DashboardWebhookQuery,
  errors: ['not_found'],
  response: DashboardWebhookList,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock'>) =>
    async ({ viewer, query }, reply) => {
      const { companyId } = viewer
      const nowMs = deps.clock()
      const webhooks = await listOrReportDrift(reply, async () => {
        const { workspaceIds } = await visibleWorkspaces(deps.db, viewer, query.workspaceId)
        const found = []
        for (const workspaceId of workspaceIds) {
          found.push(...(await listWorkspaceWebhooks(deps.db, { companyId, workspaceId })))
        }
        return found
      })
      return { webhooks: webhooks.map((webhook) => dashboardWebhook(webhook, nowMs)) }
    },
})
