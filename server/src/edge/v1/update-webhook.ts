import { changeWebhook, getWebhook } from '../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../auth/key-caller.ts'
import { defineRoute } from '../define-route.ts'
import { WebhookChange, WebhookParams, WebhookRecord } from '../schema/webhook.ts'
import { readWebhookChange, refuseDestination } from '../webhook/webhook-input.ts'
import { webhookRecord } from '../webhook/webhook-record.ts'
import type { WebhookDeps } from '../webhook/webhook-deps.ts'

/** PATCH /v1/webhooks/{webhookId}: fields that aren't sent stay as they are. */
export const updateWebhook = defineRoute({
  method: 'PATCH',
  path: '/v1/webhooks/:webhookId',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Update a webhook',
  description:
    'A new `url` also applies to deliveries that are waiting. A new `projectId` applies to events that are stored from now on.',
  params: WebhookParams,
  body: WebhookChange,
  errors: ['unknown_project'],
  response: WebhookRecord,
  handle: (deps: WebhookDeps) => async (request) => {
    refuseDestination(request.body.url, deps)
    const caller = keyCaller(deps, request)
    const webhook = await getWebhook(deps, caller, request.params.webhookId)
    const change = await readWebhookChange(request.body, webhook, deps)
    return webhookRecord(await changeWebhook(deps, caller, webhook, change), deps.clock())
  },
})
