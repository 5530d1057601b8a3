import { Type } from 'typebox'
import { ApiError } from '../../errors.ts'
import * as webhookStore from '../../outlet/webhook/webhook-store.ts'
import { defineRoute } from '../define-route.ts'
import { changeWithKey } from '../key-change.ts'
import { WebhookParams } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** DELETE /v1/webhooks/{webhookId}: deletes it immediately, with its secret and its deliveries. */
export const deleteWebhook = defineRoute({
  method: 'DELETE',
  path: '/v1/webhooks/:webhookId',
  key: { scope: 'COMPANY', allowlist: true },
  summary: 'Delete a webhook',
  description: 'Stops all deliveries except attempts that are already in progress.',
  params: WebhookParams,
  response: { 204: Type.Null({ description: 'It is deleted.' }) },
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params } = request
    const webhook = await getWebhook(deps, principal, params.webhookId)
    const now = new Date(deps.clock())
    const wasThere = await changeWithKey(deps, request, (trx) =>
      webhookStore.markWebhookDeleted(trx, webhook, now),
    )
    if (!wasThere) throw new ApiError('not_found')
    deps.wakeDispatcher()
    return null
  },
})
