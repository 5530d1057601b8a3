import { changeWebhook, getWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookChange, WebhookParams, WebhookRecord } from '../../schema/webhook.ts'
import { readWebhookChange, refuseDestination } from '../../webhook/webhook-input.ts'
import { webhookRecord } from '../../webhook/webhook-record.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** PATCH /v1/webhooks/{webhookId}: fields that aren't sent stay as they are. */
export const updateWebhook = defineRoute({
  method: 'PATCH',
  path: '/v1/webhooks/:webhookId',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Update a webhook',
  description:
    'A new `url` and new `headers` also apply to deliveries that are waiting. A `url` with another origin removes the headers, unless the same request sends `headers`. A new `projectId` or `filter` applies to events that are stored from now on. If nothing changes, nothing is written.',
  params: WebhookParams,
  body: WebhookChange,
  errors: ['unknown_project', 'conflict'],
  response: WebhookRecord,
  handle: (deps: WebhookDeps) => async (request) => {
    refuseDestination(request.body.url, deps)
    const caller = keyCaller(deps, request)
    const webhook = await getWebhook(deps, caller, request.params.webhookId)
    const change = await readWebhookChange(request.body, webhook, deps)
    return webhookRecord(await changeWebhook(deps, caller, webhook, change), deps.clock())
  },
})
