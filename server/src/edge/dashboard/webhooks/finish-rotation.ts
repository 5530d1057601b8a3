import { finishOverlap } from '../../../outlet/webhook/webhook-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { FinishedRotation, WebhookParams } from '../../schema/webhook.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** POST /dashboard/webhooks/{webhookId}/finish-rotation */
export const finishDashboardWebhookRotation = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/finish-rotation',
  member: 'webhooks.manage',
  summary: 'Finish a secret rotation',
  description: 'Ends the overlap, so only the new secret is used from now on.',
  params: WebhookParams,
  response: FinishedRotation,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) =>
    await finishOverlap(deps, memberCaller(deps, request), request.params.webhookId),
})
