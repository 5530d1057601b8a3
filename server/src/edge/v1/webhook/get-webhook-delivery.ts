import { getDelivery } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { DeliveryParams, DeliveryWithAttempts } from '../../schema/webhook.ts'
import { deliveryRecord } from '../../webhook/webhook-record.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** GET /v1/webhooks/{webhookId}/deliveries/{deliveryId}: a delivery and the outcome of each attempt. */
export const getWebhookDelivery = defineRoute({
  method: 'GET',
  path: '/v1/webhooks/:webhookId/deliveries/:deliveryId',
  key: { scope: 'COMPANY', permission: 'webhooks' },
  summary: 'Get a delivery',
  description: 'Returns a delivery with its attempts.',
  params: DeliveryParams,
  response: DeliveryWithAttempts,
  handle: (deps: WebhookDeps) => async (request) => {
    const { delivery } = await getDelivery(deps, keyCaller(deps, request), request.params)
    return { ...deliveryRecord(delivery), attempts: delivery.attempts }
  },
})
