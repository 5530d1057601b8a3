import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { DeliveryParams, DeliveryWithAttempts } from '../schema/webhook.ts'
import { deliveryRecord } from '../webhook/webhook-record.ts'
import { getDelivery, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** GET /v1/webhooks/{webhookId}/deliveries/{deliveryId}: a delivery and the outcome of each attempt. */
export const getWebhookDelivery =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/v1/webhooks/:webhookId/deliveries/:deliveryId',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY' }),
        schema: {
          operationId: 'getWebhookDelivery',
          summary: 'Get a delivery',
          description: 'Returns a delivery with its attempts.',
          tags: ['Webhooks'],
          params: DeliveryParams,
          response: { 200: DeliveryWithAttempts },
        },
      },
      async ({ principal, params }) => {
        const { delivery } = await getDelivery(deps, principal, params)
        return { ...deliveryRecord(delivery), attempts: delivery.attempts }
      },
    )
  }
