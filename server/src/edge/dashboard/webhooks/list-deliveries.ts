import { defineRoute } from '../../define-route.ts'
import { readDeliveryPage } from '../../webhook/delivery-page.ts'
import { DeliveryPage, DeliveryQuery, WebhookParams } from '../../schema/webhook.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { getVisibleWebhook } from './visible-webhook.ts'

/** GET /dashboard/webhooks/{webhookId}/deliveries: newest first, or ascending from a sequence. */
export const listDashboardDeliveries = defineRoute({
  method: 'GET',
  path: '/dashboard/webhooks/:webhookId/deliveries',
  member: 'webhooks.read',
  summary: 'List deliveries',
  description:
    'Returns one delivery per event, newest first by `sequence`, or in ascending order with `afterSequence`.',
  params: WebhookParams,
  query: DeliveryQuery,
  response: DeliveryPage,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'cursors'>) =>
    async ({ viewer, params, query }, reply) => {
      const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
      const [page] = await listOrReportDrift(reply, 'webhook_delivery', async () => [
        await readDeliveryPage(deps, webhook, query, { reader: viewer.userId }),
      ])
      return page ?? { data: [], nextCursor: null }
    },
})
