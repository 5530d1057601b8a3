import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import * as webhookStore from '../../outlet/webhook/webhook-store.ts'
import { changeWithKey } from '../key-change.ts'
import { refuseBody } from '../http/no-body.ts'
import { WebhookParams, WebhookStatusResult } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

const REASON = 'Disabled through the API.'

/** POST /v1/webhooks/{webhookId}/disable: the dispatcher then ends pending deliveries. */
export const disableWebhook =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhookId/disable',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true }),
        preValidation: refuseBody,
        schema: {
          operationId: 'disableWebhook',
          summary: 'Disable a webhook',
          description:
            'Waiting deliveries become FAILED. Disabling a disabled webhook changes nothing.',
          tags: ['Webhooks'],
          params: WebhookParams,
          response: {
            200: WebhookStatusResult,
          },
        },
      },
      async (request) => {
        const { principal, params } = request
        const webhook = await getWebhook(deps, principal, params.webhookId)
        const now = new Date(deps.clock())
        await changeWithKey(deps, request, (trx) =>
          webhookStore.markWebhookDisabled(trx, webhook, { reason: REASON, now }),
        )
        deps.wakeDispatcher()
        return { id: webhook.id, status: 'DISABLED' as const }
      },
    )
  }
