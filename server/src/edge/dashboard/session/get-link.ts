import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { findLink } from '../../../tenancy/one-time-link-store.ts'
import { ROLES } from '../../../tenancy/user-store.ts'
import { STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

export const LinkTokenText = Type.String({
  maxLength: 200,
  description: 'What stands behind the `#` of the link.',
})

const LinkRecord = Type.Object(
  {
    kind: Type.Enum(['INVITATION', 'RESET']),
    email: Type.String(),
    companyName: Type.String(),
    role: Type.Optional(
      Type.Enum([...ROLES], { description: 'Of an invitation: what the member will be.' }),
    ),
  },
  STRICT,
)

/**
 * POST /dashboard/links/look: shows what a link is for. The token is in the body, because URLs are logged.
 */
export const getLink =
  (
    deps: Pick<DashboardDeps, 'dbFast' | 'clock' | 'publicRoute' | 'login'>,
  ): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/links/look',
      {
        ...deps.publicRoute(deps.login.throttle.byAddress('link')),
        schema: {
          operationId: 'getLink',
          summary: 'What a one-time link is for',
          description: 'Looking does not use it up. Unknown, used and expired ones are the same.',
          tags: ['Session'],
          security: [],
          body: Type.Object({ token: LinkTokenText }, STRICT),
          errors: ['not_found'],
          response: { 200: LinkRecord },
        },
      },
      async ({ body, clientAddress: address }) => {
        const link = await deps.login.throttle.runAdmitted('link', { address }, async () => {
          const found = await findLink(deps.dbFast, body.token, deps.clock())
          if (!found) throw linkNotFound()
          return found
        })
        const { kind, email, companyName } = link
        return { kind, email, companyName, ...(kind === 'INVITATION' && { role: link.role }) }
      },
    )
  }

export function linkNotFound(): ApiError {
  return new ApiError('not_found', {
    message: 'This link is not valid. It may have expired, or was already used. Request a new one.',
  })
}
