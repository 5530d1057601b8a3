import { Type } from 'typebox'
import { defineRoute } from '../../define-route.ts'
import { refuseKey } from './refuse-key.ts'

/** POST /v1/workspaces/{workspaceId}/keys: a key can't create keys. */
export const createWorkspaceKey = defineRoute({
  method: 'POST',
  path: '/v1/workspaces/:workspaceId/keys',
  key: { permission: null, dashboardOnly: true },
  summary: 'Create a key (dashboard only)',
  description: 'Always responds with 403. Create keys in the dashboard.',
  params: Type.Object({ workspaceId: Type.String() }),
  handle: () => refuseKey,
})
