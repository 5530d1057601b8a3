import { sendTest } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { TestReceipt, WebhookParams } from '../../schema/webhook.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** POST /v1/webhooks/{webhookId}/test: sends a signed delivery without an event. */
export const testWebhook = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/test',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true },
  summary: 'Send a test event',
  description:
    'Creates a test delivery, whose request has the header `x-service-test: true`. Get the delivery to see the result.',
  params: WebhookParams,
  errors: ['conflict'],
  response: { 202: TestReceipt },
  handle: (deps: WebhookDeps) => async (request) =>
    await sendTest(deps, keyCaller(deps, request), request.params.webhookId),
})
