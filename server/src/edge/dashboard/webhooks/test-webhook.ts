import { sendTest } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { TestReceipt, WebhookParams } from '../../schema/webhook.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

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
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) =>
    await sendTest(deps, memberCaller(deps, request), request.params.webhookId),
})
