import type { Queryable } from '../../../platform/pg/database.ts'
import { listKeyWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceInfoList } from '../../schema/workspace.ts'
import { workspaceInfo } from '../../workspace-resource.ts'

/** GET /v1/workspaces: the workspaces that the key can see. */
export const listWorkspacesRoute = defineRoute({
  method: 'GET',
  path: '/v1/workspaces',
  key: { permission: null },
  summary: 'List workspaces',
  description:
    'Returns the workspaces that the key can see: its own for a workspace key, and for a company key all workspaces of the company, by name, followed by the system workspace. A company can have up to 100, plus the system workspace.',
  response: WorkspaceInfoList,
  handle:
    (deps: { db: Queryable }) =>
    async ({ principal }) => {
      const workspaces = await listKeyWorkspaces(deps.db, principal)
      return { workspaces: workspaces.map(workspaceInfo) }
    },
})
