import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { newWebhookSecret } from '../../outlet/webhook/webhook-secret.ts'
import { insertWebhook } from '../../outlet/webhook/webhook-store.ts'
import { WEBHOOK_EVENTS } from '../../outlet/webhook/webhook.ts'
import { newId } from '../../platform/id.ts'
import { BODY_ERRORS, errorResponses } from '../schema/common.ts'
import { CreatedWebhook, WEBHOOK_ERRORS, WebhookInput, WorkspaceParams } from '../schema/webhook.ts'
import { readProject, refuseDestination } from '../webhook-input.ts'
import { getWorkspace, type WebhookDeps } from '../webhook-resource.ts'

/** POST /v1/workspaces/{workspaceId}/webhooks: the only answer that holds the first secret. */
export const createWebhook =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/workspaces/:workspaceId/webhooks',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY', allowlist: true, plan: 'PRO' }),
        schema: {
          operationId: 'createWebhook',
          summary: 'Create a webhook',
          description:
            'Sends every event that is stored from now on. `secret` is returned in this answer only.',
          tags: ['Webhooks'],
          params: WorkspaceParams,
          body: WebhookInput,
          response: {
            201: { ...CreatedWebhook, description: 'Created, and enabled.' },
            ...errorResponses(
              ...WEBHOOK_ERRORS,
              ...BODY_ERRORS,
              'unknown_project',
              'plan_required',
              'conflict',
            ),
          },
        },
      },
      async ({ principal, params, body }, reply) => {
        refuseDestination(body.url, deps)
        const workspaceId = await getWorkspace(deps, principal, params.workspaceId)
        const projectId = await readProject(body.projectId ?? null, workspaceId, deps)
        const nowMs = deps.clock()
        const id = newId<'webhook'>(nowMs)
        const secret = body.customSecret ?? newWebhookSecret()
        const webhook = await deps.db.transaction().execute((tx) =>
          insertWebhook(tx, {
            id,
            companyId: principal.companyId,
            workspaceId,
            projectId,
            url: body.url,
            events: body.events ?? WEBHOOK_EVENTS,
            secret: deps.box.seal(secret, id),
            secretLabel: body.secretLabel ?? null,
            now: new Date(nowMs),
          }),
        )
        return await reply.code(201).send({
          id,
          url: webhook.url,
          status: webhook.status,
          events: webhook.events,
          projectId,
          secretLabel: webhook.secretLabel,
          secret,
          createdAt: webhook.createdAt.toISOString(),
        })
      },
    )
  }
