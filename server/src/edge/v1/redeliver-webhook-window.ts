import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { ApiError } from '../../errors.ts'
import { redeliverWindow, type TimeWindow } from '../../outlet/webhook/redeliver-window.ts'
import { DELIVERY_KEPT_MS } from '../../outlet/webhook/sweep-worker.ts'
import { parseRfc3339 } from '../../platform/rfc3339.ts'
import { BODY_ERRORS, errorResponses } from '../schema/common.ts'
import { WEBHOOK_ERRORS, WebhookParams, WindowAnswer, WindowInput } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/redeliver: what a receiver missed in a time. */
export const redeliverWebhookWindow =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/webhooks/:webhookId/redeliver',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true }),
        schema: {
          operationId: 'redeliverWebhookWindow',
          summary: 'Send again what was missed',
          description:
            'Of the events that were received in the window: failed deliveries are sent again, and deliveries are made for events that came while the webhook was disabled. At most 10,000 a call; while `isComplete` is false, call again from `continueFrom`.',
          tags: ['Webhooks'],
          params: WebhookParams,
          body: WindowInput,
          response: {
            202: { ...WindowAnswer, description: 'To be sent.' },
            ...errorResponses(...WEBHOOK_ERRORS, ...BODY_ERRORS, 'conflict'),
          },
        },
      },
      async ({ principal, params, body }, reply) => {
        const window = readWindow(body, deps.clock())
        const webhook = await getWebhook(deps, principal, params.webhookId)
        if (webhook.status === 'DISABLED') {
          throw new ApiError('conflict', { message: 'The webhook is disabled. Enable it first.' })
        }
        const { continueFrom, ...counts } = await redeliverWindow(
          deps.db,
          webhook,
          window,
          deps.clock,
        )
        deps.wakeDispatcher()
        return await reply.code(202).send({
          ...counts,
          isComplete: continueFrom === null,
          continueFrom: continueFrom?.toISOString() ?? null,
        })
      },
    )
  }

/** Beyond the time that deliveries are kept, what succeeded cannot be told from what is missing. */
function readWindow({ from, to }: Static<typeof WindowInput>, nowMs: number): TimeWindow {
  const fromMs = parseRfc3339(from) ?? Number.NaN
  const toMs = parseRfc3339(to) ?? Number.NaN
  if (!(fromMs < toMs)) throw badFrom('must be before to')
  if (fromMs < nowMs - DELIVERY_KEPT_MS) throw badFrom('must not be more than 30 days ago')
  return { fromMs, toMs }
}

function badFrom(message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: /from ${message}.`,
    details: [{ path: '/from', message }],
  })
}
