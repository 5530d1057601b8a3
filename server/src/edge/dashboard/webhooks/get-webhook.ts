import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { DashboardWebhook } from '../../schema/dashboard/webhooks.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardWebhook, getVisibleWebhook } from './visible-webhook.ts'

/** GET /dashboard/webhooks/{webhookId} */
export const getDashboardWebhook =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/webhooks/:webhookId',
      {
        ...deps.signedIn('webhooks.read'),
        schema: {
          operationId: 'getDashboardWebhook',
          summary: 'Get a webhook',
          description: 'Returns the webhook.',
          tags: ['Webhooks'],
          params: WebhookParams,
          response: { 200: DashboardWebhook },
        },
      },
      async ({ viewer, params }) =>
        dashboardWebhook(await getVisibleWebhook(deps.db, viewer, params.webhookId), deps.clock()),
    )
  }
