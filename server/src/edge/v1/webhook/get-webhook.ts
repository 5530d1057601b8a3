import { getWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, WebhookRecord } from '../../schema/webhook.ts'
import { webhookRecord } from '../../webhook/webhook-record.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** GET /v1/webhooks/{webhookId}: as in the list, without its secrets. */
export const getWebhookRoute = defineRoute({
  method: 'GET',
  path: '/v1/webhooks/:webhookId',
  key: { scope: 'COMPANY', permission: 'webhooks' },
  summary: 'Get a webhook',
  description: 'Returns the webhook, without its secret.',
  params: WebhookParams,
  response: WebhookRecord,
  handle: (deps: WebhookDeps) => async (request) => {
    const webhook = await getWebhook(deps, keyCaller(deps, request), request.params.webhookId)
    return webhookRecord(webhook, deps.clock())
  },
})
