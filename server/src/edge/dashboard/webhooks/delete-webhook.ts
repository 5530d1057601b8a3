import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { markWebhookDeleted } from '../../../outlet/webhook/webhook-store.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

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
    const webhook = await getVisibleWebhook(deps.db, request.viewer, request.params.webhookId)
    await audited(deps, actorOf(request), async (trx, note) => {
      const wasThere = await markWebhookDeleted(trx, webhook, new Date(deps.clock()))
      if (!wasThere) throw new ApiError('not_found')
      note({
        action: 'WEBHOOK_DELETED',
        resource: webhookResource(webhook),
        metadata: { url: webhook.url },
      })
    })
    deps.wakeDispatcher()
    return null
  },
})
