import { stopWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, WebhookStatusResult } from '../../schema/webhook.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** POST /v1/webhooks/{webhookId}/disable: the dispatcher then ends pending deliveries. */
export const disableWebhook = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/disable',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Disable a webhook',
  description: 'Waiting deliveries become FAILED. Disabling a disabled webhook changes nothing.',
  params: WebhookParams,
  response: WebhookStatusResult,
  handle: (deps: WebhookDeps) => async (request) =>
    await stopWebhook(deps, keyCaller(deps, request), request.params.webhookId),
})
