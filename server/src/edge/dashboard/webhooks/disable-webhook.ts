import { stopWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, WebhookStatusResult } from '../../schema/webhook.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** POST /dashboard/webhooks/{webhookId}/disable */
export const disableDashboardWebhook = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/disable',
  member: 'webhooks.manage',
  summary: 'Disable a webhook',
  description: 'Waiting deliveries become FAILED.',
  params: WebhookParams,
  response: WebhookStatusResult,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) =>
    await stopWebhook(deps, memberCaller(deps, request), request.params.webhookId),
})
