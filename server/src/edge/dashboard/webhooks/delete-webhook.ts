import { Type } from 'typebox'
import { removeWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** DELETE /dashboard/webhooks/{webhookId} */
export const deleteDashboardWebhook = defineRoute({
  method: 'DELETE',
  path: '/dashboard/webhooks/:webhookId',
  member: 'webhooks.manage',
  summary: 'Delete a webhook',
  description: 'Stops all deliveries except attempts that are already in progress.',
  params: WebhookParams,
  response: { 204: Type.Null({ description: 'It is deleted.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) => {
    await removeWebhook(deps, memberCaller(deps, request), request.params.webhookId)
    return null
  },
})
