import { defineRoute } from '../define-route.ts'
import { changeWithKey } from '../key-change.ts'
import { TestReceipt, WebhookParams } from '../schema/webhook.ts'
import { sendTest } from '../webhook/webhook-actions.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/test: sends a signed delivery without an event. */
export const testWebhook = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/test',
  key: { scope: 'COMPANY', allowlist: true },
  summary: 'Send a test event',
  description:
    'Creates a test delivery, whose request has the header `x-service-test: true`. Get the delivery to see the result.',
  params: WebhookParams,
  errors: ['conflict'],
  response: { 202: TestReceipt },
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params } = request
    const webhook = await getWebhook(deps, principal, params.webhookId)
    const receipt = await changeWithKey(deps, request, (trx) => sendTest(trx, deps, webhook))
    deps.wakeDispatcher()
    return receipt
  },
})
