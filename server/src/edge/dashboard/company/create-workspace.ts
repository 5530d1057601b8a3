import { newId } from '../../../platform/id.ts'
import * as workspaceStore from '../../../tenancy/workspace/workspace-store.ts'
import { getWorkspaceSummary } from '../../../tenancy/workspace/workspace-summary-store.ts'
import { defineRoute } from '../../define-route.ts'
import { NameInput, WorkspaceRecord } from '../../schema/dashboard/company.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { workspaceRecord } from '../../workspace-record.ts'

/** POST /dashboard/workspaces: creates a workspace with its own chain. */
export const createWorkspace = defineRoute({
  method: 'POST',
  path: '/dashboard/workspaces',
  member: 'company.manage',
  summary: 'Create a workspace',
  description: 'Creates a workspace with its own chain.',
  body: NameInput,
  errors: ['conflict'],
  response: { 201: { ...WorkspaceRecord, description: 'The new workspace.' } },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { companyId } = request.viewer
    const name = readName(request.body.name)
    const nowMs = deps.clock()
    const id = newId<'workspace'>(nowMs)
    const summary = await audited(deps, actorOf(request), async (trx, record) => {
      await workspaceStore.insertWorkspace(trx, { id, companyId, name, kind: 'CUSTOMER' })
      record({
        action: 'WORKSPACE_CREATED',
        resource: { type: 'workspace', id },
        metadata: { name },
      })
      return await getWorkspaceSummary(trx, { companyId, named: id }, new Date(nowMs))
    })
    return workspaceRecord(summary)
  },
})
