import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../../errors.ts'
import { failWaitingAndEnable } from '../../outlet/webhook/enable-webhook.ts'
import { lockForKeyChange } from '../key-change.ts'
import { refuseBody } from '../http/no-body.ts'
import { WebhookParams, WebhookStatusResult } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/enable: resumes with events stored from now on. */
export const enableWebhook =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhookId/enable',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true }),
        preValidation: refuseBody,
        schema: {
          operationId: 'enableWebhook',
          summary: 'Enable a webhook',
          description:
            'The webhook sends events that are stored from now on. Use `redeliver` to resend events that it missed. Enabling an enabled webhook changes nothing.',
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
        const isThere = await failWaitingAndEnable(deps.db, webhook, deps.clock, {
          before: (trx) => lockForKeyChange(trx, request, deps.clock()),
        })
        if (!isThere) throw new ApiError('not_found')
        deps.wakeDispatcher()
        return { id: webhook.id, status: 'ENABLED' as const }
      },
    )
  }
