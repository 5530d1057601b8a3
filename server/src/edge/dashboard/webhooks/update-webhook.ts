import { ApiError } from '../../../errors.ts'
import { lockWebhook } from '../../../outlet/webhook/webhook-store.ts'
import { defineRoute } from '../../define-route.ts'
import { DashboardWebhook } from '../../schema/dashboard/webhooks.ts'
import { WebhookChange, WebhookParams } from '../../schema/webhook.ts'
import { changeWebhook } from '../../webhook/webhook-actions.ts'
import { readProject, refuseDestination } from '../../webhook/webhook-input.ts'
import { actorOf, audited } from '../audit.ts'
import { changedFields } from '../changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardWebhook, getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** PATCH /dashboard/webhooks/{webhookId} */
export const updateDashboardWebhook = defineRoute({
  method: 'PATCH',
  path: '/dashboard/webhooks/:webhookId',
  member: 'webhooks.manage',
  summary: 'Update a webhook',
  description:
    'A new `url` also applies to deliveries that are waiting. A new `projectId` applies to events that are stored from now on.',
  params: WebhookParams,
  body: WebhookChange,
  errors: ['unknown_project', 'conflict'],
  response: DashboardWebhook,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'destinationRules'>) => async (request) => {
    const { viewer, params, body } = request
    refuseDestination(body.url, deps)
    const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
    const { workspaceId } = webhook
    const { projectId: named, ...others } = body
    const change = {
      ...others,
      ...(named !== undefined && { projectId: await readProject(named, workspaceId, deps) }),
    }
    return await audited(deps, actorOf(request), async (trx, note) => {
      const present = await lockWebhook(trx, webhook)
      if (!present) throw new ApiError('not_found')
      const { url, events, projectId } = present
      const changed = changedFields({ url, events, projectId }, change)
      if (!changed) return dashboardWebhook(present, deps.clock())
      note({ action: 'WEBHOOK_CHANGED', resource: webhookResource(webhook), metadata: changed })
      return { ...(await changeWebhook(trx, deps, present, changed.after)), workspaceId }
    })
  },
})
