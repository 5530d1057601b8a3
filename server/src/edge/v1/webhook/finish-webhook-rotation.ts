import { finishOverlap } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { FinishedRotation, WebhookParams } from '../../schema/webhook.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** POST /v1/webhooks/{webhookId}/finish-rotation: makes the new secret the only one. */
export const finishWebhookRotation = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/finish-rotation',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Finish a secret rotation',
  description:
    'Ends the overlap, so only the new secret is used from now on. Without a rotation in progress, nothing changes.',
  params: WebhookParams,
  response: FinishedRotation,
  handle: (deps: WebhookDeps) => async (request) =>
    await finishOverlap(deps, keyCaller(deps, request), request.params.webhookId),
})
