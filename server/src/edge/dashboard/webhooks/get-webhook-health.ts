import { readWebhookHealth } from '../../../outlet/webhook/webhook-health-store.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookHealth } from '../../schema/dashboard/webhooks.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook } from './visible-webhook.ts'

/** GET /dashboard/webhooks/{webhookId}/health: the last day, by hour. */
export const getWebhookHealth = defineRoute({
  method: 'GET',
  path: '/dashboard/webhooks/:webhookId/health',
  member: 'webhooks.read',
  summary: 'Get delivery statistics',
  description: 'Returns statistics about the deliveries of the last 24 hours.',
  params: WebhookParams,
  response: WebhookHealth,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock'>) =>
    async ({ viewer, params }) => {
      const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
      const { workspaceId, id: webhookId } = webhook
      const nowMs = deps.clock()
      const health = await readWebhookHealth(deps.db, { workspaceId, webhookId, nowMs })
      const hours = health.hours.map((hour) => ({
        ...hour,
        startsAt: hour.startsAt.toISOString(),
      }))
      const overdueSince = health.overdueSince?.toISOString() ?? null
      return { ...health, hours, overdueSince }
    },
})
