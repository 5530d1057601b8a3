import { resendWindow } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, RedeliveryResult, WindowInput } from '../../schema/webhook.ts'
import { readWindow } from '../../webhook/webhook-input.ts'
import { windowRecord } from '../../webhook/webhook-record.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** POST /v1/webhooks/{webhookId}/redeliver: resends events that the receiver missed in a time window. */
export const redeliverWebhookWindow = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/redeliver',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Resend missed events',
  description:
    'Resends failed deliveries of events received in the time range, and creates deliveries for events received while the webhook was disabled. Processes up to 10,000 deliveries per request. While `isComplete` is false, send another request from `continueFrom`.',
  params: WebhookParams,
  body: WindowInput,
  errors: ['conflict'],
  response: { 202: RedeliveryResult },
  handle: (deps: WebhookDeps) => async (request) => {
    const { params, body } = request
    const window = readWindow(body, deps.clock())
    const options = { ...body, window }
    return windowRecord(
      await resendWindow(deps, keyCaller(deps, request), params.webhookId, options),
    )
  },
})
