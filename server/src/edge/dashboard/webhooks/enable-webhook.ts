import { ApiError } from '../../../errors.ts'
import { failWaitingAndEnable } from '../../../outlet/webhook/enable-webhook.ts'
import { PLAN_TERMS } from '../../../tenancy/plans.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, WebhookStatusResult } from '../../schema/webhook.ts'
import { refusePlanWithoutWebhooks } from '../../webhook/webhook-actions.ts'
import { actorOf, lockForChange, writeEntry } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/enable */
export const enableDashboardWebhook = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/enable',
  member: 'webhooks.manage',
  summary: 'Enable a webhook',
  description: 'The webhook sends events that are stored from now on.',
  params: WebhookParams,
  errors: ['plan_required'],
  response: WebhookStatusResult,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) => {
    const { viewer, params } = request
    const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
    if (!PLAN_TERMS[viewer.plan].hasWebhooks) throw new ApiError('plan_required')
    let actor = actorOf(request)
    const entry = { action: 'WEBHOOK_ENABLED', resource: webhookResource(webhook) } as const
    const isThere = await failWaitingAndEnable(deps.db, webhook, deps.clock, {
      before: async (trx) => {
        actor = await lockForChange(trx, actor, deps.clock())
        await refusePlanWithoutWebhooks(trx, viewer.companyId)
      },
      alongside: (trx) => writeEntry(trx, actor, entry, deps.clock()),
    })
    if (!isThere) throw new ApiError('not_found')
    deps.wakeDispatcher()
    return { id: webhook.id, status: 'ENABLED' as const }
  },
})
