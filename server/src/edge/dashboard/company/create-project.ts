import { newId } from '../../../platform/id.ts'
import * as workspaceStore from '../../../tenancy/workspace/workspace-store.ts'
import {
  getWorkspaceSummary,
  refuseSystemWorkspace,
} from '../../../tenancy/workspace/workspace-summary-store.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { NameInput, ProjectRecord } from '../../schema/dashboard/company.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { projectRecord } from '../../workspace-record.ts'

/** POST /dashboard/workspaces/{workspaceId}/projects: events can use the project immediately. */
export const createProject = defineRoute({
  method: 'POST',
  path: '/dashboard/workspaces/:workspaceId/projects',
  member: 'company.manage',
  summary: 'Create a project',
  description: 'Creates a project in the workspace.',
  params: WorkspaceParams,
  body: NameInput,
  errors: ['conflict'],
  response: { 201: { ...ProjectRecord, description: 'The new project.' } },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { companyId } = request.viewer
    const name = readName(request.body.name)
    const nowMs = deps.clock()
    const id = newId<'project'>(nowMs)
    const project = await audited(deps, actorOf(request), async (trx, record) => {
      const named = { companyId, named: request.params.workspaceId }
      const workspace = await getWorkspaceSummary(trx, named, new Date(nowMs))
      refuseSystemWorkspace(workspace)
      const workspaceId = workspace.id
      await workspaceStore.insertProject(trx, { id, companyId, workspaceId, name })
      record({
        action: 'PROJECT_CREATED',
        resource: { type: 'project', id },
        metadata: { name, workspaceId },
      })
      return await workspaceStore.lockProject(trx, { workspaceId, projectId: id })
    })
    return projectRecord(project)
  },
})
