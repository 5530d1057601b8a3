import { addWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { CreatedWebhook, WebhookInput } from '../../schema/webhook.ts'
import { readProject, readWebhookInput, refuseDestination } from '../../webhook/webhook-input.ts'
import { createdWebhook } from '../../webhook/webhook-record.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'
import { getKeyWorkspace } from '../../workspace-resource.ts'

/** POST /v1/workspaces/{workspaceId}/webhooks: the only response that contains the first secret. */
export const createWebhook = defineRoute({
  method: 'POST',
  path: '/v1/workspaces/:workspaceId/webhooks',
  key: { scope: 'COMPANY', permission: 'webhooks', allowlist: true, plan: 'PRO' },
  summary: 'Create a webhook',
  description:
    'The webhook sends the events that are stored from now on and match its `projectId` and `filter`. The response is the only one that contains `secret`.',
  params: WorkspaceParams,
  body: WebhookInput,
  errors: ['unknown_project', 'conflict'],
  response: { 201: CreatedWebhook },
  handle: (deps: WebhookDeps) => async (request) => {
    const { principal, params, body } = request
    refuseDestination(body.url, deps)
    const input = readWebhookInput(body)
    const { id: workspaceId } = await getKeyWorkspace(deps.db, principal, params.workspaceId)
    const projectId = await readProject(body.projectId ?? null, workspaceId, deps)
    const owner = { workspaceId, projectId }
    return createdWebhook(await addWebhook(deps, keyCaller(deps, request), owner, input))
  },
})
