import { changeWebhook, getWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { DashboardWebhook } from '../../schema/dashboard/webhooks.ts'
import { WebhookChange, WebhookParams } from '../../schema/webhook.ts'
import { readWebhookChange, refuseDestination } from '../../webhook/webhook-input.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardWebhook } from './visible-webhook.ts'

/** PATCH /dashboard/webhooks/{webhookId} */
export const updateDashboardWebhook = defineRoute({
  method: 'PATCH',
  path: '/dashboard/webhooks/:webhookId',
  member: 'webhooks.manage',
  summary: 'Update a webhook',
  description:
    'A new `url` and new `headers` also apply to deliveries that are waiting. A `url` with another origin removes the headers, unless the same request sends `headers`. A new `projectId` or `filter` applies to events that are stored from now on. If nothing changes, nothing is written.',
  params: WebhookParams,
  body: WebhookChange,
  errors: ['unknown_project', 'conflict'],
  response: DashboardWebhook,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'box' | 'destinationRules'>) => async (request) => {
      refuseDestination(request.body.url, deps)
      const caller = memberCaller(deps, request)
      const webhook = await getWebhook(deps, caller, request.params.webhookId)
      const change = await readWebhookChange(request.body, webhook, deps)
      return dashboardWebhook(await changeWebhook(deps, caller, webhook, change), deps.clock())
    },
})
