import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { refuseBody } from '../../http/no-body.ts'
import { TestReceipt, WebhookParams } from '../../schema/webhook.ts'
import { sendTest } from '../../webhook/webhook-actions.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/test */
export const testDashboardWebhook =
  (
    deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher' | 'signedIn'>,
  ): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/webhooks/:webhookId/test',
      {
        ...deps.signedIn('webhooks.manage'),
        preValidation: refuseBody,
        schema: {
          operationId: 'testDashboardWebhook',
          summary: 'Send a test event',
          description: 'Creates a test delivery. Get the delivery to see the result.',
          tags: ['Webhooks'],
          params: WebhookParams,
          errors: ['conflict'],
          response: {
            202: TestReceipt,
          },
        },
      },
      async (request, reply) => {
        const { viewer, params } = request
        const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
        const receipt = await audited(deps, actorOf(request), async (trx, note) => {
          const sent = await sendTest(trx, deps, webhook)
          note({
            action: 'WEBHOOK_TESTED',
            resource: webhookResource(webhook),
            metadata: { deliveryId: sent.deliveryId },
          })
          return sent
        })
        deps.wakeDispatcher()
        return await reply.code(202).send(receipt)
      },
    )
  }
