import { startWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, WebhookStatusResult } from '../../schema/webhook.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** POST /dashboard/webhooks/{webhookId}/enable */
export const enableDashboardWebhook = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/enable',
  member: 'webhooks.manage',
  summary: 'Enable a webhook',
  description: 'The webhook sends events that are stored from now on. Works on every plan.',
  params: WebhookParams,
  response: WebhookStatusResult,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) =>
    await startWebhook(deps, memberCaller(deps, request), request.params.webhookId),
})
