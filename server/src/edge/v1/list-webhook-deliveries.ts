import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { readDeliveryPage } from '../delivery-page.ts'
import { DeliveryPage, DeliveryQuery, WebhookParams } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook-resource.ts'

/** GET /v1/webhooks/{webhookId}/deliveries: newest first, or ascending from a sequence. */
export const listWebhookDeliveries =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/v1/webhooks/:webhookId/deliveries',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY' }),
        schema: {
          operationId: 'listWebhookDeliveries',
          summary: 'List deliveries',
          description:
            'One for each event and webhook. Newest first by sequence; with `afterSequence` ascending. Kept until 30 days after their end. A cursor belongs to its webhook and filters. Follow `nextCursor` until it is null: with `status`, a page can have fewer deliveries than `limit`, or even none, although more follow.',
          tags: ['Webhooks'],
          params: WebhookParams,
          querystring: DeliveryQuery,
          response: {
            200: DeliveryPage,
          },
        },
      },
      async ({ principal, params, query }) => {
        const webhook = await getWebhook(deps, principal, params.webhookId)
        return await readDeliveryPage(deps, webhook, query)
      },
    )
  }
