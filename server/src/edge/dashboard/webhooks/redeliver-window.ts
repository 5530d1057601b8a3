import { resendWindow } from '../../../outlet/webhook/delivery/delivery-actions.ts'
import { defineRoute } from '../../define-route.ts'
import { WebhookParams, RedeliveryResult, WindowInput } from '../../schema/webhook.ts'
import { readWindow } from '../../webhook/webhook-input.ts'
import { windowRecord } from '../../webhook/webhook-record.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** POST /dashboard/webhooks/{webhookId}/redeliver */
export const redeliverDashboardWindow = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks/:webhookId/redeliver',
  member: 'webhooks.manage',
  summary: 'Resend missed events',
  description:
    'Processes up to 10,000 deliveries per request. While `isComplete` is false, send another request from `continueFrom`.',
  params: WebhookParams,
  body: WindowInput,
  errors: ['conflict'],
  response: { 202: RedeliveryResult },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeDispatcher'>) => async (request) => {
    const { params, body } = request
    const window = readWindow(body, deps.clock())
    const options = { ...body, window }
    return windowRecord(
      await resendWindow(deps, memberCaller(deps, request), params.webhookId, options),
    )
  },
})
