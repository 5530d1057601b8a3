import { defineRoute } from '../../define-route.ts'
import { readDeliveryPage } from '../../webhook/delivery-page.ts'
import { DeliveryPage, DeliveryQuery, WebhookParams } from '../../schema/webhook.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
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
    async ({ viewer, params, query }, reply) =>
      await readOrReportDrift(reply, { data: [], nextCursor: null }, async () => {
        const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
        return await readDeliveryPage(deps, webhook, query, { reader: viewer.userId })
      }),
})
