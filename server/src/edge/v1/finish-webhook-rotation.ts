import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../../errors.ts'
import { finishRotation } from '../../outlet/webhook/rotation.ts'
import { lockWebhook, updateSecrets } from '../../outlet/webhook/webhook-store.ts'
import { refuseBody } from '../no-body.ts'
import { BODY_ERRORS, errorResponses } from '../schema/common.ts'
import { FinishedRotation, WEBHOOK_ERRORS, WebhookParams } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/finish-rotation: the new secret becomes the only one now. */
export const finishWebhookRotation =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhookId/finish-rotation',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true }),
        preValidation: refuseBody,
        schema: {
          operationId: 'finishWebhookRotation',
          summary: 'End a rotation’s overlap',
          description:
            'The secret that the rotation returned is the only one from now on. Without a rotation nothing changes.',
          tags: ['Webhooks'],
          params: WebhookParams,
          response: {
            200: FinishedRotation,
            ...errorResponses(...WEBHOOK_ERRORS, ...BODY_ERRORS),
          },
        },
      },
      async ({ principal, params }) => {
        const { id, workspaceId } = await getWebhook(deps, principal, params.webhookId)
        await deps.db.transaction().execute(async (tx) => {
          const webhook = await lockWebhook(tx, { workspaceId, id })
          if (!webhook) throw new ApiError('not_found')
          if (webhook.nextSecretAt === null) return
          const secrets = finishRotation(webhook.secrets)
          await updateSecrets(tx, webhook, { ...secrets, now: new Date(deps.clock()) })
        })
        return { id, nextSecretAt: null }
      },
    )
  }
