import { defineRoute } from '../../define-route.ts'
import { TestReceipt, WebhookParams } from '../../schema/webhook.ts'
import { sendTest } from '../../webhook/webhook-actions.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/test */
export const testDashboardWebhook = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/test',
  member: 'webhooks.manage',
  summary: 'Send a test event',
  description: 'Creates a test delivery. Get the delivery to see the result.',
  params: WebhookParams,
  errors: ['conflict'],
  response: { 202: TestReceipt },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) => {
    const { viewer, params } = request
    const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
    const receipt = await audited(deps, actorOf(request), async (trx, note) => {
      const sent = await sendTest(trx, deps, webhook)
      note({
        action: 'WEBHOOK_TESTED',
        resource: webhookResource(webhook),
        metadata: { deliveryId: sent.deliveryId },
      })
      return sent
    })
    deps.wakeDispatcher()
    return receipt
  },
})
