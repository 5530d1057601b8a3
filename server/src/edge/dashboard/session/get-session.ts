import { isAllowed, PERMISSIONS } from '../../../tenancy/policy.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { listViewerWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { SessionRecord } from '../../schema/dashboard/session.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** GET /dashboard/session: the signed-in member, with their permissions and workspaces. */
export const getSession = defineRoute({
  method: 'GET',
  path: '/dashboard/session',
  member: 'self.enroll',
  summary: 'Get the session',
  description: 'Returns the signed-in member.',
  response: SessionRecord,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer, clientAddress }) =>
      await sessionRecord(deps, viewer, clientAddress),
})

export async function sessionRecord(
  { db }: Pick<DashboardDeps, 'db'>,
  viewer: Viewer,
  address: string,
) {
  return {
    user: { id: viewer.userId, email: viewer.email, role: viewer.role },
    company: { id: viewer.companyId, name: viewer.companyName, plan: viewer.plan },
    workspaces: await listViewerWorkspaces(db, viewer),
    permissions: PERMISSIONS.filter((permission) => isAllowed(viewer.role, permission)),
    address,
    needsSecondFactor: viewer.needsSecondFactor,
  }
}
