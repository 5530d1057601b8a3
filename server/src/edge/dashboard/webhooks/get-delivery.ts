import { readRequestBody } from '../../../outlet/webhook/delivery/delivery-request.ts'
import { defineRoute } from '../../define-route.ts'
import { DeliveryWithRequest } from '../../schema/dashboard/webhooks.ts'
import { DeliveryParams } from '../../schema/webhook.ts'
import { deliveryRecord } from '../../webhook/webhook-record.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleDelivery } from './visible-webhook.ts'

/** GET /dashboard/webhooks/{webhookId}/deliveries/{deliveryId}: the request and the responses. */
export const getDashboardDelivery = defineRoute({
  method: 'GET',
  path: '/dashboard/webhooks/:webhookId/deliveries/:deliveryId',
  member: 'webhooks.read',
  summary: 'Get a delivery',
  description: 'Returns a delivery with its attempts and its request body.',
  params: DeliveryParams,
  response: DeliveryWithRequest,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer, params }) => {
      const { webhook, delivery } = await getVisibleDelivery(deps.db, viewer, params)
      return {
        ...deliveryRecord(delivery),
        attempts: delivery.attempts,
        requestBody: await readRequestBody(deps.db, webhook, delivery),
      }
    },
})
