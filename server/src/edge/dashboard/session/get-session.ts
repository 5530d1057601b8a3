import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { isAllowed, PERMISSIONS } from '../../../tenancy/policy.ts'
import { ROLES } from '../../../tenancy/user-store.ts'
import { PLANS } from '../../../tenancy/plans.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { listViewerWorkspaces } from '../../../tenancy/workspace-store.ts'
import { errorResponses, SESSION_ERRORS, STRICT, Uuid } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

export const SessionRecord = Type.Object(
  {
    user: Type.Object({ id: Uuid, email: Type.String(), role: Type.Enum([...ROLES]) }, STRICT),
    company: Type.Object({ id: Uuid, name: Type.String(), plan: Type.Enum([...PLANS]) }, STRICT),
    workspaces: Type.Array(
      Type.Object(
        { id: Uuid, name: Type.String(), kind: Type.Enum(['CUSTOMER', 'SYSTEM']) },
        STRICT,
      ),
    ),
    permissions: Type.Array(Type.Enum([...PERMISSIONS]), {
      description: 'What the role may do; a page shows the rest disabled.',
    }),
    address: Type.String({ description: 'Where this request came from.' }),
  },
  STRICT,
)

/** GET /dashboard/session: the signed-in member, with their permissions and workspaces. */
export const getSession =
  (deps: Pick<DashboardDeps, 'db' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/session',
      {
        ...deps.signedIn('self.manage'),
        schema: {
          operationId: 'getSession',
          summary: 'Who is signed in',
          tags: ['Session'],
          response: { 200: SessionRecord, ...errorResponses(...SESSION_ERRORS) },
        },
      },
      async ({ viewer, clientAddress }) => await sessionRecord(deps, viewer, clientAddress),
    )
  }

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
  }
}
