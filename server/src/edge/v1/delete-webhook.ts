import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ApiError } from '../../errors.ts'
import * as webhookStore from '../../outlet/webhook/webhook-store.ts'
import { changeWithKey } from '../key-change.ts'
import { refuseBody } from '../http/no-body.ts'
import { WebhookParams } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** DELETE /v1/webhooks/{webhookId}: deletes it immediately, with its secret and its deliveries. */
export const deleteWebhook =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.delete(
      '/v1/webhooks/:webhookId',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true }),
        preValidation: refuseBody,
        schema: {
          operationId: 'deleteWebhook',
          summary: 'Delete a webhook',
          description: 'Stops all deliveries except attempts that are already in progress.',
          tags: ['Webhooks'],
          params: WebhookParams,
          response: {
            204: Type.Null({ description: 'It is deleted.' }),
          },
        },
      },
      async (request, reply) => {
        const { principal, params } = request
        const webhook = await getWebhook(deps, principal, params.webhookId)
        const now = new Date(deps.clock())
        const wasThere = await changeWithKey(deps, request, (trx) =>
          webhookStore.markWebhookDeleted(trx, webhook, now),
        )
        if (!wasThere) throw new ApiError('not_found')
        deps.wakeDispatcher()
        return await reply.code(204).send(null)
      },
    )
  }
