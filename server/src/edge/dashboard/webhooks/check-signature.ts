import { ApiError } from '../../../errors.ts'
import { checkSignature } from '../../../outlet/webhook/secret/signature-check.ts'
import { secretsAt } from '../../../outlet/webhook/secret/rotation.ts'
import { runInSlices } from '../../../platform/scheduling/time-slice.ts'
import { defineRoute } from '../../define-route.ts'
import { SignatureCheckResult, SignatureCheckInput } from '../../schema/dashboard/webhooks.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/check-signature: explains why a signature doesn't match. */
export const checkWebhookSignature = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/check-signature',
  member: 'webhooks.manage',
  summary: 'Check a signature',
  description: 'Explains why a signature does not match. Stores nothing and reveals no secret.',
  params: WebhookParams,
  body: SignatureCheckInput,
  errors: ['conflict'],
  response: SignatureCheckResult,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'box'>) =>
    async ({ viewer, params, body }) => {
      const { id, secrets } = await getVisibleWebhook(deps.db, viewer, params.webhookId)
      const sealed = secretsAt(secrets, deps.clock())
      const current = deps.box.open(sealed.current, id)
      if (current === null) {
        throw new ApiError('conflict', {
          message:
            "The webhook's secret can't be decrypted with this node's secret key. Rotate the webhook's secret.",
        })
      }
      const next = sealed.next && deps.box.open(sealed.next, id)
      const question = {
        body: body.body,
        signature: body.signature,
        id: body.id ?? null,
        timestamp: body.timestamp ?? null,
        secret: body.secret ?? null,
      }
      return await runInSlices(checkSignature(question, { current, next }))
    },
})
