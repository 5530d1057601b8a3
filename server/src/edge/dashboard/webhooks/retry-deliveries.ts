import { retryDeliveries } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { parseRfc3339 } from '../../../platform/time/rfc3339.ts'
import { defineRoute } from '../../define-route.ts'
import { RetryInput, RetryResult } from '../../schema/dashboard/webhooks.ts'
import { WebhookParams } from '../../schema/webhook.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** POST /dashboard/webhooks/{webhookId}/retry */
export const retryDashboardDeliveries = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/retry',
  member: 'webhooks.manage',
  summary: 'Retry deliveries now',
  description:
    'Queues up to 1,000 deliveries of one status, as they were when they were previewed. While `continueAfter` is not null, send another request with it as `afterSequence`.',
  params: WebhookParams,
  body: RetryInput,
  errors: ['conflict'],
  response: { 202: RetryResult },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) => {
    const { status, throughSequence, previewedAt, afterSequence = 0 } = request.body
    const scope = { throughSequence, previewedAt: new Date(parseRfc3339(previewedAt) ?? 0) }
    return await retryDeliveries(deps, memberCaller(deps, request), request.params.webhookId, {
      status,
      scope,
      afterSequence,
    })
  },
})
