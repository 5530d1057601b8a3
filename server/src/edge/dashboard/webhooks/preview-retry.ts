import { previewRetry } from '../../../outlet/webhook/delivery/retry-store.ts'
import { defineRoute } from '../../define-route.ts'
import { RetryPreview } from '../../schema/dashboard/webhooks.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook } from './visible-webhook.ts'

/** GET /dashboard/webhooks/{webhookId}/retry: what a retry would send. */
export const previewDashboardRetry = defineRoute({
  method: 'GET',
  path: '/dashboard/webhooks/:webhookId/retry',
  member: 'webhooks.read',
  summary: 'Preview a retry',
  description:
    'Counts the deliveries that failed or wait for a retry, by their last response. Sends nothing.',
  params: WebhookParams,
  response: RetryPreview,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock'>) =>
    async ({ viewer, params }) => {
      const { workspaceId, id } = await getVisibleWebhook(deps.db, viewer, params.webhookId)
      const previewedAt = new Date(deps.clock()).toISOString()
      return { ...(await previewRetry(deps.db, { workspaceId, webhookId: id })), previewedAt }
    },
})
