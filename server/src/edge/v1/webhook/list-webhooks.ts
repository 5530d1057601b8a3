import { Type } from 'typebox'
import * as webhookStore from '../../../outlet/webhook/webhook-store.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText, listJson } from '../../page-json.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { WebhookList } from '../../schema/webhook.ts'
import { webhookRecord } from '../../webhook/webhook-record.ts'
import type { WebhookDeps } from '../../webhook/webhook-deps.ts'
import { getKeyWorkspace } from '../../workspace-resource.ts'

/** GET /v1/workspaces/{workspaceId}/webhooks: all of them, without their secrets. */
export const listWebhooks = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/webhooks',
  key: { scope: 'COMPANY', permission: 'webhooks' },
  summary: 'List webhooks',
  description:
    'Returns all webhooks of the workspace, oldest first. A workspace can have up to 50.',
  params: WorkspaceParams,
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(WebhookList),
  handle:
    (deps: WebhookDeps) =>
    async ({ principal, params }, reply) => {
      const { companyId } = principal
      const { id: workspaceId } = await getKeyWorkspace(deps.db, principal, params.workspaceId)
      const webhooks = await webhookStore.listWorkspaceWebhooks(deps.db, {
        companyId,
        workspaceId,
      })
      const nowMs = deps.clock()
      asJsonText(reply)
      return await listJson('webhooks', webhooks, {
        record: (webhook) => webhookRecord(webhook, nowMs),
        owner: companyId,
      })
    },
})
