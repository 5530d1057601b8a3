import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { refuseBody } from '../../http/no-body.ts'
import { FinishedRotation, WebhookParams } from '../../schema/webhook.ts'
import { finishOverlap } from '../../webhook/webhook-actions.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getVisibleWebhook, webhookResource } from './visible-webhook.ts'

/** POST /dashboard/webhooks/{webhookId}/finish-rotation */
export const finishDashboardWebhookRotation =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/webhooks/:webhookId/finish-rotation',
      {
        ...deps.signedIn('webhooks.manage'),
        preValidation: refuseBody,
        schema: {
          operationId: 'finishDashboardWebhookRotation',
          summary: 'Finish a secret rotation',
          description: 'Ends the overlap, so only the new secret is used from now on.',
          tags: ['Webhooks'],
          params: WebhookParams,
          response: {
            200: FinishedRotation,
          },
        },
      },
      async (request) => {
        const { viewer, params } = request
        const webhook = await getVisibleWebhook(deps.db, viewer, params.webhookId)
        const entry = {
          action: 'WEBHOOK_SECRET_ROTATED',
          resource: webhookResource(webhook),
          metadata: { overlapEnded: true },
        } as const
        return await audited(deps, actorOf(request), (trx, note) =>
          finishOverlap(trx, deps, webhook, () => note(entry)),
        )
      },
    )
  }
