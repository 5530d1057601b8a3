import { Type } from 'typebox'
import { removeWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** DELETE /v1/webhooks/{webhookId}: deletes it immediately, with its secret and its deliveries. */
export const deleteWebhook = defineRoute({
  method: 'DELETE',
  path: '/v1/webhooks/:webhookId',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Delete a webhook',
  description: 'Stops all deliveries except attempts that are already in progress.',
  params: WebhookParams,
  response: { 204: Type.Null({ description: 'It is deleted.' }) },
  handle: (deps: WebhookDeps) => async (request) => {
    await removeWebhook(deps, keyCaller(deps, request), request.params.webhookId)
    return null
  },
})
