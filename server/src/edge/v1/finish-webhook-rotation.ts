import { defineRoute } from '../define-route.ts'
import { changeWithKey } from '../key-change.ts'
import { FinishedRotation, WebhookParams } from '../schema/webhook.ts'
import { finishOverlap } from '../webhook/webhook-actions.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/finish-rotation: makes the new secret the only one. */
export const finishWebhookRotation = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/finish-rotation',
  key: { scope: 'COMPANY', allowlist: true },
  summary: 'Finish a secret rotation',
  description:
    'Ends the overlap, so only the new secret is used from now on. Without a rotation in progress, nothing changes.',
  params: WebhookParams,
  response: FinishedRotation,
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params } = request
    const webhook = await getWebhook(deps, principal, params.webhookId)
    return await changeWithKey(deps, request, (trx) => finishOverlap(trx, deps, webhook))
  },
})
