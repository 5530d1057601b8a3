import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { markWebhookDisabled } from '../../../outlet/webhook/webhook-store.ts'
import { refuseBody } from '../../http/no-body.ts'
import { WebhookParams, WebhookStatusResult } from '../../schema/webhook.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/disable */
export const disableDashboardWebhook =
  (
    deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher' | 'signedIn'>,
  ): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/webhooks/:webhookId/disable',
      {
        ...deps.signedIn('webhooks.manage'),
        preValidation: refuseBody,
        schema: {
          operationId: 'disableDashboardWebhook',
          summary: 'Disable a webhook',
          description: 'Waiting deliveries become FAILED.',
          tags: ['Webhooks'],
          params: WebhookParams,
          response: {
            200: WebhookStatusResult,
          },
        },
      },
      async (request) => {
        const { viewer, params } = request
        const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
        await audited(deps, actorOf(request), async (trx, note) => {
          const now = new Date(deps.clock())
          const reason = `Disabled in the dashboard by ${viewer.email}.`
          const wasEnabled = await markWebhookDisabled(trx, webhook, { reason, now })
          if (wasEnabled) note({ action: 'WEBHOOK_DISABLED', resource: webhookResource(webhook) })
        })
        deps.wakeDispatcher()
        return { id: webhook.id, status: 'DISABLED' as const }
      },
    )
  }
