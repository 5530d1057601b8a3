import { listDeliveredEvents } from '../../../outlet/webhook/delivery/delivered-event-store.ts'
import { defineRoute } from '../../define-route.ts'
import { DashboardDeliveryPage } from '../../schema/dashboard/webhooks.ts'
import { readDeliveryPage } from '../../webhook/delivery-page.ts'
import { DeliveryQuery, WebhookParams } from '../../schema/webhook.ts'
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
    'Returns one delivery per event, newest first by `sequence`, or in ascending order with `afterSequence`, each with what it is about.',
  params: WebhookParams,
  query: DeliveryQuery,
  response: DashboardDeliveryPage,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'cursors'>) =>
    async ({ viewer, params, query }, reply) =>
      await readOrReportDrift(reply, { data: [], nextCursor: null }, async () => {
        const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
        const page = await readDeliveryPage(deps, webhook, query, { reader: viewer.userId })
        const seqs = page.data.flatMap(({ eventSeq }) => eventSeq ?? [])
        const { workspaceId } = webhook
        const events = await listDeliveredEvents(deps.db, { workspaceId, seqs })
        const data = page.data.map((delivery) => ({
          ...delivery,
          event: delivery.eventSeq === null ? null : (events.get(delivery.eventSeq) ?? null),
        }))
        return { ...page, data }
      }),
})
