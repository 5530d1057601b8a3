import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import * as webhookStore from '../../outlet/webhook/webhook-store.ts'
import { WorkspaceParams } from '../schema/common.ts'
import { WebhookList } from '../schema/webhook.ts'
import { webhookRecord } from '../webhook/webhook-record.ts'
import { getWorkspace, type WebhookDeps } from '../webhook/webhook-resource.ts'

/** GET /v1/workspaces/{workspaceId}/webhooks: all of them, without their secrets. */
export const listWebhooks =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/v1/workspaces/:workspaceId/webhooks',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY' }),
        schema: {
          operationId: 'listWebhooks',
          summary: 'List webhooks',
          description:
            'Returns all webhooks of the workspace, oldest first. A workspace can have up to 50.',
          tags: ['Webhooks'],
          params: WorkspaceParams,
          response: { 200: WebhookList },
        },
      },
      async ({ principal, params }) => {
        const { companyId } = principal
        const workspaceId = await getWorkspace(deps, principal, params.workspaceId)
        const webhooks = await webhookStore.listWorkspaceWebhooks(deps.db, {
          companyId,
          workspaceId,
        })
        const nowMs = deps.clock()
        return { webhooks: webhooks.map((webhook) => webhookRecord(webhook, nowMs)) }
      },
    )
  }
