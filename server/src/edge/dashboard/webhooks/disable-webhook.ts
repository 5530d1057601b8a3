import { markWebhookDisabled } from '../../../outlet/webhook/webhook-store.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, WebhookStatusResult } from '../../schema/webhook.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/disable */
export const disableDashboardWebhook = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/disable',
  member: 'webhooks.manage',
  summary: 'Disable a webhook',
  description: 'Waiting deliveries become FAILED.',
  params: WebhookParams,
  response: WebhookStatusResult,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) => {
    const { viewer, params } = request
    const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
    await audited(deps, actorOf(request), async (trx, note) => {
      const now = new Date(deps.clock())
      const reason = `Disabled in the dashboard by ${viewer.email}.`
      const wasEnabled = await markWebhookDisabled(trx, webhook, { reason, now })
      if (wasEnabled) note({ action: 'WEBHOOK_DISABLED', resource: webhookResource(webhook) })
    })
    deps.wakeDispatcher()
    return { id: webhook.id, status: 'DISABLED' as const }
  },
})
