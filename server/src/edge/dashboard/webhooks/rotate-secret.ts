import { defineRoute } from '../../define-route.ts'
import { RotatedSecret, SecretRotation, WebhookParams } from '../../schema/webhook.ts'
import { rotateSecret } from '../../webhook/webhook-actions.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

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
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'box'>) => async (request) => {
    const { viewer, params, body } = request
    const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
    return await audited(deps, actorOf(request), async (trx, note) => {
      const rotated = await rotateSecret(trx, deps, webhook, body)
      note({
        action: 'WEBHOOK_SECRET_ROTATED',
        resource: webhookResource(webhook),
        metadata: { nextSecretAt: rotated.nextSecretAt },
      })
      return rotated
    })
  },
})
