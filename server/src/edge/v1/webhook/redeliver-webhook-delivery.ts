import { resendDelivery } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { DeliveryParams, DeliveryRecord } from '../../schema/webhook.ts'
import { deliveryRecord } from '../../webhook/webhook-record.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** POST /v1/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver: resends it with the same id. */
export const redeliverWebhookDelivery = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/deliveries/:deliveryId/redeliver',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Resend a delivery',
  description:
    'Sends the delivery immediately, whether it failed, succeeded or is waiting for a retry. It keeps its ID and `sequence`. Attempts keep counting, and the retry schedule starts again.',
  params: DeliveryParams,
  errors: ['conflict'],
  response: { 202: { ...DeliveryRecord, description: 'The delivery, which will be sent again.' } },
  handle: (deps: WebhookDeps) => async (request) =>
    deliveryRecord(await resendDelivery(deps, keyCaller(deps, request), request.params)),
})
