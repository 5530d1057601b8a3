import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../../errors.ts'
import { rotate } from '../../outlet/webhook/rotation.ts'
import { newWebhookSecret } from '../../outlet/webhook/webhook-secret.ts'
import { lockWebhook, updateSecrets } from '../../outlet/webhook/webhook-store.ts'
import { readAbsentBody } from '../no-body.ts'
import { BODY_ERRORS, errorResponses } from '../schema/common.ts'
import {
  OVERLAP_SECONDS_DEFAULT,
  RotatedSecret,
  SecretRotation,
  WEBHOOK_ERRORS,
  WebhookParams,
} from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/rotate-secret: the only answer that holds the new secret. */
export const rotateWebhookSecret =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhookId/rotate-secret',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true }),
        preValidation: readAbsentBody,
        schema: {
          operationId: 'rotateWebhookSecret',
          summary: 'Rotate the secret',
          description:
            'Until `nextSecretAt`, `x-service-signature` is made with the old secret and `webhook-signature` carries both. With `overlapSeconds` 0 the new secret is the only one at once, also when an overlap is under way. `secret` is returned in this answer only. No body is an empty one.',
          tags: ['Webhooks'],
          params: WebhookParams,
          body: SecretRotation,
          response: {
            200: RotatedSecret,
            ...errorResponses(...WEBHOOK_ERRORS, ...BODY_ERRORS, 'conflict'),
          },
        },
      },
      async ({ principal, params, body }) => {
        const { id, workspaceId } = await getWebhook(deps, principal, params.webhookId)
        const secret = body.customSecret ?? newWebhookSecret()
        const overlapMs = (body.overlapSeconds ?? OVERLAP_SECONDS_DEFAULT) * 1_000
        const nowMs = deps.clock()
        const nextAt = await deps.db.transaction().execute(async (tx) => {
          const webhook = await lockWebhook(tx, { workspaceId, id })
          if (!webhook) throw new ApiError('not_found')
          const fresh = deps.box.seal(secret, id)
          const secrets = rotate(webhook.secrets, fresh, { overlapMs, nowMs })
          if (!secrets) throw overlapConflict(webhook.nextSecretAt)
          await updateSecrets(tx, webhook, { ...secrets, now: new Date(nowMs) })
          return secrets.nextAt
        })
        return { id, secret, nextSecretAt: nextAt?.toISOString() ?? null }
      },
    )
  }

function overlapConflict(until: Date | null): ApiError {
  return new ApiError('conflict', {
    message: `A rotation is under way until ${until?.toISOString()}. End it with POST /v1/webhooks/{webhookId}/finish-rotation, or replace both secrets with overlapSeconds 0.`,
  })
}
