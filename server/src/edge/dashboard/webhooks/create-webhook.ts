import { ApiError } from '../../../errors.ts'
import { addWebhook } from '../../../outlet/webhook/webhook-actions.ts'
import { PLAN_TERMS } from '../../../tenancy/plans.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { DashboardWebhookInput } from '../../schema/dashboard/webhooks.ts'
import { CreatedWebhook } from '../../schema/webhook.ts'
import { readProject, readWebhookInput, refuseDestination } from '../../webhook/webhook-input.ts'
import { createdWebhook } from '../../webhook/webhook-record.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** POST /dashboard/webhooks: the only response that contains the first secret. */
export const createDashboardWebhook = defineRoute({
  method: 'POST',
  path: '/dashboard/webhooks',
  member: 'webhooks.manage',
  summary: 'Create a webhook',
  description: 'The response is the only one that contains `secret`.',
  body: DashboardWebhookInput,
  errors: ['unknown_project', 'plan_required', 'not_found', 'conflict'],
  response: { 201: CreatedWebhook },
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'box' | 'destinationRules' | 'wakeDispatcher'>) =>
    async (request) => {
      const { viewer, body } = request
      if (!PLAN_TERMS[viewer.plan].hasWebhooks) throw new ApiError('plan_required')
      refuseDestination(body.url, deps)
      const input = readWebhookInput(body)
      const workspaceId = await visibleWorkspace(deps.db, viewer, body.workspaceId)
      const projectId = await readProject(body.projectId ?? null, workspaceId, deps)
      const owner = { workspaceId, projectId }
      return createdWebhook(await addWebhook(deps, memberCaller(deps, request), owner, input))
    },
})
