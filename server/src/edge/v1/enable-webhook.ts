import { ApiError } from '../../errors.ts'
import { failWaitingAndEnable } from '../../outlet/webhook/enable-webhook.ts'
import { defineRoute } from '../define-route.ts'
import { lockForKeyChange } from '../key-change.ts'
import { WebhookParams, WebhookStatusResult } from '../schema/webhook.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** POST /v1/webhooks/{webhookId}/enable: resumes with events stored from now on. */
export const enableWebhook = defineRoute({
  method: 'POST',
  path: '/v1/webhooks/:webhookId/enable',
  key: { scope: 'COMPANY', allowlist: true },
  summary: 'Enable a webhook',
  description:
    'The webhook sends events that are stored from now on. Use `redeliver` to resend events that it missed. Enabling an enabled webhook changes nothing.',
  params: WebhookParams,
  response: WebhookStatusResult,
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params } = request
    const webhook = await getWebhook(deps, principal, params.webhookId)
    const isThere = await failWaitingAndEnable(deps.db, webhook, deps.clock, {
      before: (trx) => lockForKeyChange(trx, request, deps.clock()),
    })
    if (!isThere) throw new ApiError('not_found')
    deps.wakeDispatcher()
    return { id: webhook.id, status: 'ENABLED' as const }
  },
})
