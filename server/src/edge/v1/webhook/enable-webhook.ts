import { startWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, WebhookStatusResult } from '../../schema/webhook.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** POST /v1/webhooks/{webhookId}/enable: resumes with events stored from now on. */
export const enableWebhook = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/enable',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Enable a webhook',
  description:
    'The webhook sends events that are stored from now on. Use `redeliver` to resend events that it missed. Enabling an enabled webhook changes nothing. Works on every plan.',
  params: WebhookParams,
  response: WebhookStatusResult,
  handle: (deps: WebhookDeps) => async (request) =>
    await startWebhook(deps, keyCaller(deps, request), request.params.webhookId),
})
