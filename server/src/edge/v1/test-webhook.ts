import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { changeWithKey } from '../key-change.ts'
import { refuseBody } from '../http/no-body.ts'
import { TestReceipt, WebhookParams } from '../schema/webhook.ts'
import { sendTest } from '../webhook/webhook-actions.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/test: sends a signed delivery without an event. */
export const testWebhook =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhookId/test',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true }),
        preValidation: refuseBody,
        schema: {
          operationId: 'testWebhook',
          summary: 'Send a test event',
          description:
            'Creates a test delivery, whose request has the header `x-service-test: true`. Get the delivery to see the result.',
          tags: ['Webhooks'],
          params: WebhookParams,
          errors: ['conflict'],
          response: {
            202: TestReceipt,
          },
        },
      },
      async (request, reply) => {
        const { principal, params } = request
        const webhook = await getWebhook(deps, principal, params.webhookId)
        const receipt = await changeWithKey(deps, request, (trx) => sendTest(trx, deps, webhook))
        deps.wakeDispatcher()
        return await reply.code(202).send(receipt)
      },
    )
  }
