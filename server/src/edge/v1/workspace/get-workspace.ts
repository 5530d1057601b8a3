import type { Queryable } from '../../../platform/pg/database.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { WorkspaceInfo } from '../../schema/workspace.ts'
import { getVisibleWorkspace, workspaceInfo } from '../../workspace-resource.ts'

/** GET /v1/workspaces/{workspaceId} */
export const getWorkspaceRoute = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId',
  key: { permission: null },
  summary: 'Get a workspace',
  description: 'Returns a workspace that the key can see.',
  params: WorkspaceParams,
  response: WorkspaceInfo,
  handle:
    (deps: { db: Queryable }) =>
    async ({ principal, params }) =>
      workspaceInfo(await getVisibleWorkspace(deps.db, principal, params.workspaceId)),
})
