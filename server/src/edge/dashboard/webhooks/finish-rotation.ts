import { defineRoute } from '../../define-route.ts'
import { FinishedRotation, WebhookParams } from '../../schema/webhook.ts'
import { finishOverlap } from '../../webhook/webhook-actions.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/finish-rotation */
export const finishDashboardWebhookRotation = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/finish-rotation',
  member: 'webhooks.manage',
  summary: 'Finish a secret rotation',
  description: 'Ends the overlap, so only the new secret is used from now on.',
  params: WebhookParams,
  response: FinishedRotation,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, params } = request
    const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
    const entry = {
      action: 'WEBHOOK_SECRET_ROTATED',
      resource: webhookResource(webhook),
      metadata: { overlapEnded: true },
    } as const
    return await audited(deps, actorOf(request), (trx, note) =>
      finishOverlap(trx, deps, webhook, () => note(entry)),
    )
  },
})
