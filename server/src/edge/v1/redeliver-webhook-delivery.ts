import { defineRoute } from '../define-route.ts'
import { changeWithKey } from '../key-change.ts'
import { DeliveryParams, DeliveryRecord } from '../schema/webhook.ts'
import { resendDelivery } from '../webhook/webhook-actions.ts'
import { deliveryRecord } from '../webhook/webhook-record.ts'
import { getDelivery, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver: resends it with the same id. */
export const redeliverWebhookDelivery = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/deliveries/:deliveryId/redeliver',
  key: { scope: 'COMPANY', allowlist: true },
  summary: 'Resend a delivery',
  description:
    'Sends the delivery immediately, whether it failed, succeeded or is waiting for a retry. It keeps its ID and `sequence`. Attempts keep counting, and the retry schedule starts again.',
  params: DeliveryParams,
  errors: ['conflict'],
  response: { 202: { ...DeliveryRecord, description: 'The delivery, which will be sent again.' } },
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params } = request
    const { webhook, delivery } = await getDelivery(deps, principal, params)
    await changeWithKey(deps, request, (trx) => resendDelivery(trx, deps, webhook, delivery.id))
    const again = await getDelivery(deps, principal, params)
    deps.wakeDispatcher()
    return deliveryRecord(again.delivery)
  },
})
