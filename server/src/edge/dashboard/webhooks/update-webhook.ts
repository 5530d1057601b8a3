import { changeWebhook, getWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { DashboardWebhook } from '../../schema/dashboard/webhooks.ts'
import { WebhookChange, WebhookParams } from '../../schema/webhook.ts'
import { readWebhookChange, refuseDestination } from '../../webhook/webhook-input.ts'
import { memberCaller } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardWebhook } from './visible-webhook.ts'

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
    refuseDestination(request.body.url, deps)
    const caller = memberCaller(deps, request)
    const webhook = await getWebhook(deps, caller, request.params.webhookId)
    const change = await readWebhookChange(request.body, webhook, deps)
    const options = { skipsUnchanged: true }
    const changed = await changeWebhook(deps, caller, webhook, change, options)
    return dashboardWebhook(changed, deps.clock())
  },
})
