import { defineRoute } from '../define-route.ts'
import { changeWithKey } from '../key-change.ts'
import { WebhookChange, WebhookParams, WebhookRecord } from '../schema/webhook.ts'
import { changeWebhook } from '../webhook/webhook-actions.ts'
import { readProject, refuseDestination } from '../webhook/webhook-input.ts'
import { getWebhook, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** PATCH /v1/webhooks/{webhookId}: fields that aren't sent stay as they are. */
export const updateWebhook = defineRoute({
  method: 'PATCH',
  path: '/v1/webhooks/:webhookId',
  key: { scope: 'COMPANY', allowlist: true },
  summary: 'Update a webhook',
  description:
    'A new `url` also applies to deliveries that are waiting. A new `projectId` applies to events that are stored from now on.',
  params: WebhookParams,
  body: WebhookChange,
  errors: ['unknown_project'],
  response: WebhookRecord,
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params } = request
    const { url, events, projectId } = request.body
    refuseDestination(url, deps)
    const found = await getWebhook(deps, principal, params.webhookId)
    const change = {
      ...(url !== undefined && { url }),
      ...(events !== undefined && { events }),
      ...(projectId !== undefined && {
        projectId: await readProject(projectId, found.workspaceId, deps),
      }),
    }
    return await changeWithKey(deps, request, (trx) => changeWebhook(trx, deps, found, change))
  },
})
