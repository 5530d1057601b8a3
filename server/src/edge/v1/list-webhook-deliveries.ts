import { defineRoute } from '../define-route.ts'
import { readDeliveryPage } from '../webhook/delivery-page.ts'
import { DeliveryPage, DeliveryQuery, WebhookParams } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** GET /v1/webhooks/{webhookId}/deliveries: newest first, or ascending from a sequence. */
export const listWebhookDeliveries = defineRoute({
  method: 'GET',
  path: '/v1/webhooks/:webhookId/deliveries',
  key: { scope: 'COMPANY' },
  summary: 'List deliveries',
  description:
    'Returns one delivery per event, newest first by `sequence`, or in ascending order with `afterSequence`. Deliveries are kept for 30 days after they are final. A cursor is only valid for the same webhook and filters. Follow `nextCursor` until it is null: with `status`, a page can have fewer deliveries than `limit`, or even none, although more follow.',
  params: WebhookParams,
  query: DeliveryQuery,
  response: DeliveryPage,
  handle:
    (deps: WebhookDeps) =>
    async ({ principal, params, query }) => {
      const webhook = await getWebhook(deps, principal, params.webhookId)
      return await readDeliveryPage(deps, webhook, query)
    },
})
