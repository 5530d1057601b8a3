import { rotateSecret } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { RotatedSecret, SecretRotation, WebhookParams } from '../../schema/webhook.ts'
import { readRotation } from '../../webhook/webhook-input.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** POST /v1/webhooks/{webhookId}/rotate-secret: the only response that contains the new secret. */
export const rotateWebhookSecret = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/rotate-secret',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Rotate the secret',
  description:
    'Until `nextSecretAt`, `x-service-signature` uses the old secret and `webhook-signature` contains a signature with each. If `overlapSeconds` is 0, the new secret replaces all others immediately. The response is the only one that contains `secret`.',
  params: WebhookParams,
  body: SecretRotation,
  isBodyOptional: true,
  errors: ['conflict'],
  response: RotatedSecret,
  handle: (deps: WebhookDeps) => async (request) =>
    await rotateSecret(
      deps,
      keyCaller(deps, request),
      request.params.webhookId,
      readRotation(request.body),
    ),
})
