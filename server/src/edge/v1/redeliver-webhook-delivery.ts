import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { changeWithKey } from '../key-change.ts'
import { refuseBody } from '../http/no-body.ts'
import { DeliveryParams, DeliveryRecord } from '../schema/webhook.ts'
import { resendDelivery } from '../webhook/webhook-actions.ts'
import { deliveryRecord } from '../webhook/webhook-record.ts'
import { getDelivery, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver: resends it with the same id. */
export const redeliverWebhookDelivery =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhookId/deliveries/:deliveryId/redeliver',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true }),
        preValidation: refuseBody,
        schema: {
          operationId: 'redeliverWebhookDelivery',
          summary: 'Resend a delivery',
          description:
            'Sends the delivery immediately, whether it failed, succeeded or is waiting for a retry. It keeps its ID and `sequence`. Attempts keep counting, and the retry schedule starts again.',
          tags: ['Webhooks'],
          params: DeliveryParams,
          errors: ['conflict'],
          response: {
            202: { ...DeliveryRecord, description: 'The delivery, which will be sent again.' },
          },
        },
      },
      async (request, reply) => {
        const { principal, params } = request
        const { webhook, delivery } = await getDelivery(deps, principal, params)
        await changeWithKey(deps, request, (trx) => resendDelivery(trx, deps, webhook, delivery.id))
        const again = await getDelivery(deps, principal, params)
        deps.wakeDispatcher()
        return await reply.code(202).send(deliveryRecord(again.delivery))
      },
    )
  }
