import { renameWorkspace } from '../../../tenancy/workspace/workspace-store.ts'
import {
  getWorkspaceSummary,
  refuseSystemWorkspace,
} from '../../../tenancy/workspace/workspace-summary-store.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { NameInput, WorkspaceRecord } from '../../schema/dashboard/company.ts'
import { actorOf, audited } from '../member-caller.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { workspaceRecord } from '../../workspace-record.ts'

/** PATCH /dashboard/workspaces/{workspaceId}: renames the workspace. */
export const updateWorkspace = defineRoute({
  method: 'PATCH',
  path: '/dashboard/workspaces/:workspaceId',
  member: 'company.manage',
  summary: 'Rename a workspace',
  description: 'Changes the name of the workspace.',
  params: WorkspaceParams,
  body: NameInput,
  errors: ['conflict'],
  response: WorkspaceRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { companyId } = request.viewer
    const name = readName(request.body.name)
    const now = new Date(deps.clock())
    return await audited(deps, actorOf(request), async (trx, record) => {
      const named = { companyId, named: request.params.workspaceId }
      const before = await getWorkspaceSummary(trx, named, now)
      refuseSystemWorkspace(before)
      const changed = changedFields({ name: before.name }, { name })
      if (!changed) return workspaceRecord(before)
      await renameWorkspace(trx, { workspaceId: before.id, name })
      record({
        action: 'WORKSPACE_CHANGED',
        resource: { type: 'workspace', id: before.id },
        metadata: changed,
      })
      return workspaceRecord({ ...before, name })
    })
  },
})
