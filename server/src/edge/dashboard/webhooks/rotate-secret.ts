import { rotateSecret } from '../../../outlet/webhook/webhook-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { RotatedSecret, SecretRotation, WebhookParams } from '../../schema/webhook.ts'
import { readRotation } from '../../webhook/webhook-input.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** POST /dashboard/webhooks/{webhookId}/rotate-secret: the only response that contains the new secret. */
export const rotateDashboardWebhookSecret = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/rotate-secret',
  member: 'webhooks.manage',
  summary: 'Rotate the secret',
  description: 'The response is the only one that contains `secret`.',
  params: WebhookParams,
  body: SecretRotation,
  isBodyOptional: true,
  errors: ['conflict'],
  response: RotatedSecret,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'box'>) => async (request) =>
    await rotateSecret(
      deps,
      memberCaller(deps, request),
      request.params.webhookId,
      readRotation(request.body),
    ),
})
