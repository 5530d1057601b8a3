import * as webhookStore from '../../outlet/webhook/webhook-store.ts'
import { defineRoute } from '../define-route.ts'
import { changeWithKey } from '../key-change.ts'
import { WebhookParams, WebhookStatusResult } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

const REASON = 'Disabled through the API.'

/** POST /v1/webhooks/{webhookId}/disable: the dispatcher then ends pending deliveries. */
export const disableWebhook = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/disable',
  key: { scope: 'COMPANY', allowlist: true },
  summary: 'Disable a webhook',
  description: 'Waiting deliveries become FAILED. Disabling a disabled webhook changes nothing.',
  params: WebhookParams,
  response: WebhookStatusResult,
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params } = request
    const webhook = await getWebhook(deps, principal, params.webhookId)
    const now = new Date(deps.clock())
    await changeWithKey(deps, request, (trx) =>
      webhookStore.markWebhookDisabled(trx, webhook, { reason: REASON, now }),
    )
    deps.wakeDispatcher()
    return { id: webhook.id, status: 'DISABLED' as const }
  },
})
