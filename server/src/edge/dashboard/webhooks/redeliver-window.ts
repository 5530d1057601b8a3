import { redeliverWindow } from '../../../outlet/webhook/redeliver-window.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, RedeliveryResult, WindowInput } from '../../schema/webhook.ts'
import { refuseDisabled } from '../../webhook/webhook-actions.ts'
import { readWindow } from '../../webhook/webhook-input.ts'
import { windowRecord } from '../../webhook/webhook-record.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/redeliver */
export const redeliverDashboardWindow = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/redeliver',
  member: 'webhooks.manage',
  summary: 'Resend missed events',
  description:
    'Processes up to 10,000 deliveries per request. While `isComplete` is false, send another request from `continueFrom`.',
  params: WebhookParams,
  body: WindowInput,
  errors: ['conflict'],
  response: { 202: RedeliveryResult },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) => {
    const { viewer, params, body } = request
    const window = readWindow(body, deps.clock())
    const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
    refuseDisabled(webhook)
    // Write the entry first. Redelivery commits page by page, and no page may go unrecorded.
    await audited(deps, actorOf(request), async (_trx, note) =>
      note({
        action: 'WEBHOOK_REDELIVERED',
        resource: webhookResource(webhook),
        metadata: { from: body.from, to: body.to },
      }),
    )
    const result = await redeliverWindow(deps.db, webhook, window, deps.clock)
    deps.wakeDispatcher()
    return windowRecord(result)
  },
})
