import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import * as workspaceStore from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { ProjectList } from '../../schema/dashboard/company.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { projectRecord } from '../../workspace-record.ts'

/** GET /dashboard/workspaces/{workspaceId}/projects: sorted by name. */
export const listProjects = defineRoute({
  method: 'GET',
  path: '/dashboard/workspaces/:workspaceId/projects',
  member: 'company.read',
  summary: 'List projects',
  description: 'Returns the projects of the workspace, by name. A workspace can have up to 100.',
  params: WorkspaceParams,
  response: ProjectList,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer, params }, reply) => {
      const projects = await listOrReportDrift(reply, async () => {
        const workspaceId = await visibleWorkspace(deps.db, viewer, params.workspaceId)
        return await workspaceStore.listWorkspaceProjects(deps.db, workspaceId)
      })
      return { projects: projects.map(projectRecord) }
    },
})
