import { ApiError } from '../../../errors.ts'
import { parseId } from '../../../platform/id.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { lockProject, renameProject } from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { NameInput, ProjectParams, ProjectRecord } from '../../schema/dashboard/company.ts'
import { actorOf, audited } from '../member-caller.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { projectRecord } from '../../workspace-record.ts'

/** PATCH /dashboard/workspaces/{workspaceId}/projects/{projectId}: renames the project. */
export const updateProject = defineRoute({
  method: 'PATCH',
  path: '/dashboard/workspaces/:workspaceId/projects/:projectId',
  member: 'company.manage',
  summary: 'Rename a project',
  description: 'Changes the name of the project.',
  params: ProjectParams,
  body: NameInput,
  errors: ['conflict'],
  response: ProjectRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, params } = request
    const name = readName(request.body.name)
    const projectId = parseId<'project'>(params.projectId)
    if (projectId === null) throw new ApiError('not_found')
    return await audited(deps, actorOf(request), async (trx, record) => {
      const workspaceId = await visibleWorkspace(trx, viewer, params.workspaceId)
      const before = await lockProject(trx, { workspaceId, projectId })
      const changed = changedFields({ name: before.name }, { name })
      if (!changed) return projectRecord(before)
      await renameProject(trx, { workspaceId, projectId, name })
      record({
        action: 'PROJECT_CHANGED',
        resource: { type: 'project', id: projectId },
        metadata: { workspaceId, ...changed },
      })
      return projectRecord({ ...before, name })
    })
  },
})
