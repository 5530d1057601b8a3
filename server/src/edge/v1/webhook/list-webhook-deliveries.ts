import { getWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { readDeliveryPage } from '../../webhook/delivery-page.ts'
import { DeliveryPage, DeliveryQuery, WebhookParams } from '../../schema/webhook.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'

/** GET /v1/webhooks/{webhookId}/deliveries: newest first, or ascending from a sequence. */
export const listWebhookDeliveries = defineRoute({
  method: 'GET',
  path: '/v1/webhooks/:webhookId/deliveries',
  key: { scope: 'COMPANY', permission: 'webhooks' },
  summary: 'List deliveries',
  description:
    'Returns one delivery per event, newest first by `sequence`, or in ascending order with `afterSequence`. Deliveries are kept for 30 days after they are final. A cursor is only valid for the same webhook and filters. Follow `nextCursor` until it is null: with `status`, a page can have fewer deliveries than `limit`, or even none, although more follow.',
  params: WebhookParams,
  query: DeliveryQuery,
  response: DeliveryPage,
  handle: (deps: WebhookDeps) => async (request) => {
    const webhook = await getWebhook(deps, keyCaller(deps, request), request.params.webhookId)
    return await readDeliveryPage(deps, webhook, request.query)
  },
})
