import type { Queryable } from '../../../platform/pg/database.ts'
import { listWorkspaceProjects } from '../../../tenancy/workspace/workspace-store.ts'
import { projectRecord } from '../../workspace-record.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { WorkspaceProjects } from '../../schema/workspace.ts'
import { getVisibleWorkspace } from '../../workspace-resource.ts'

/** GET /v1/workspaces/{workspaceId}/projects: sorted by name. */
export const listProjectsRoute = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/projects',
  key: { permission: null },
  summary: 'List projects',
  description:
    'Returns the projects of a workspace that the key can see, by name. A workspace can have up to 100.',
  params: WorkspaceParams,
  response: WorkspaceProjects,
  handle:
    (deps: { db: Queryable }) =>
    async ({ principal, params }) => {
      const workspace = await getVisibleWorkspace(deps.db, principal, params.workspaceId)
      const projects = await listWorkspaceProjects(deps.db, workspace.id)
      return { projects: projects.map(projectRecord) }
    },
})
