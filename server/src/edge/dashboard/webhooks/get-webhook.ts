import { defineRoute } from '../../define-route.ts'
import { DashboardWebhook } from '../../schema/dashboard/webhooks.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardWebhook, getVisibleWebhook } from './visible-webhook.ts'

/** GET /dashboard/webhooks/{webhookId} */
export const getDashboardWebhook = defineRoute({
  method: 'GET',
  path: '/dashboard/webhooks/:webhookId',
  member: 'webhooks.read',
  summary: 'Get a webhook',
  description: 'Returns the webhook.',
  params: WebhookParams,
  response: DashboardWebhook,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock'>) =>
    async ({ viewer, params }) =>
      dashboardWebhook(await getVisibleWebhook(deps.db, viewer, params.webhookId), deps.clock()),
})
