import { resendDelivery } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { DeliveryParams, DeliveryRecord } from '../../schema/webhook.ts'
import { deliveryRecord } from '../../webhook/webhook-record.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

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
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) =>
    deliveryRecord(await resendDelivery(deps, memberCaller(deps, request), request.params)),
})
