import { redeliverWindow } from '../../outlet/webhook/redeliver-window.ts'
import { defineRoute } from '../define-route.ts'
import { changeWithKey } from '../key-change.ts'
import { WebhookParams, RedeliveryResult, WindowInput } from '../schema/webhook.ts'
import { refuseDisabled } from '../webhook/webhook-actions.ts'
import { readWindow } from '../webhook/webhook-input.ts'
import { windowRecord } from '../webhook/webhook-record.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/redeliver: resends events that the receiver missed in a time window. */
export const redeliverWebhookWindow = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/redeliver',
  key: { scope: 'COMPANY', allowlist: true },
  summary: 'Resend missed events',
  description:
    'Resends failed deliveries of events received in the time range, and creates deliveries for events received while the webhook was disabled. Processes up to 10,000 deliveries per request. While `isComplete` is false, send another request from `continueFrom`.',
  params: WebhookParams,
  body: WindowInput,
  errors: ['conflict'],
  response: { 202: RedeliveryResult },
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params, body } = request
    const window = readWindow(body, deps.clock())
    const webhook = await getWebhook(deps, principal, params.webhookId)
    refuseDisabled(webhook)
    await changeWithKey(deps, request, async () => {})
    const result = await redeliverWindow(deps.db, webhook, window, deps.clock)
    deps.wakeDispatcher()
    return windowRecord(result)
  },
})
