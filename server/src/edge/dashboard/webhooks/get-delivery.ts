import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { readRequestBody } from '../../../outlet/webhook/delivery-request.ts'
import { DeliveryWithRequest } from '../../schema/dashboard/webhooks.ts'
import { DeliveryParams } from '../../schema/webhook.ts'
import { deliveryRecord } from '../../webhook/webhook-record.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleDelivery } from './visible-webhook.ts'

/** GET /dashboard/webhooks/{webhookId}/deliveries/{deliveryId}: the request and the responses. */
export const getDashboardDelivery =
  (deps: Pick<DashboardDeps, 'db' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/webhooks/:webhookId/deliveries/:deliveryId',
      {
        ...deps.signedIn('webhooks.read'),
        schema: {
          operationId: 'getDashboardDelivery',
          summary: 'Get a delivery',
          description: 'Returns a delivery with its attempts and its request body.',
          tags: ['Webhooks'],
          params: DeliveryParams,
          response: {
            200: DeliveryWithRequest,
          },
        },
      },
      async ({ viewer, params }) => {
        const { webhook, delivery } = await getVisibleDelivery(deps.db, viewer, params)
        return {
          ...deliveryRecord(delivery),
          attempts: delivery.attempts,
          requestBody: await readRequestBody(deps.db, webhook, delivery),
        }
      },
    )
  }
