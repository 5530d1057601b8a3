import { defineRoute } from '../../define-route.ts'
import { DeliveryParams, DeliveryRecord } from '../../schema/webhook.ts'
import { resendDelivery } from '../../webhook/webhook-actions.ts'
import { deliveryRecord } from '../../webhook/webhook-record.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleDelivery, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver */
export const redeliverDashboardDelivery = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/deliveries/:deliveryId/redeliver',
  member: 'webhooks.manage',
  summary: 'Resend a delivery',
  description: 'Sends the delivery immediately.',
  params: DeliveryParams,
  errors: ['conflict'],
  response: { 202: { ...DeliveryRecord, description: 'The delivery, which will be sent again.' } },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) => {
    const { viewer, params } = request
    const { webhook, delivery } = await getVisibleDelivery(deps.db, viewer, params)
    await audited(deps, actorOf(request), async (trx, note) => {
      await resendDelivery(trx, deps, webhook, delivery.id)
      note({
        action: 'WEBHOOK_REDELIVERED',
        resource: webhookResource(webhook),
        metadata: { deliveryId: delivery.id },
      })
    })
    const again = await getVisibleDelivery(deps.db, viewer, params)
    deps.wakeDispatcher()
    return deliveryRecord(again.delivery)
  },
})
