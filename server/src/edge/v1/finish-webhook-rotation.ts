import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { changeWithKey } from '../key-change.ts'
import { refuseBody } from '../http/no-body.ts'
import { FinishedRotation, WebhookParams } from '../schema/webhook.ts'
import { finishOverlap } from '../webhook/webhook-actions.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/finish-rotation: makes the new secret the only one. */
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
          summary: 'Finish a secret rotation',
          description:
            'Ends the overlap, so only the new secret is used from now on. Without a rotation in progress, nothing changes.',
          tags: ['Webhooks'],
          params: WebhookParams,
          response: {
            200: FinishedRotation,
          },
        },
      },
      async (request) => {
        const { principal, params } = request
        const webhook = await getWebhook(deps, principal, params.webhookId)
        return await changeWithKey(deps, request, (trx) => finishOverlap(trx, deps, webhook))
      },
    )
  }
