import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { findLink } from '../../../tenancy/member/one-time-link-store.ts'
import { ROLES } from '../../../tenancy/member/user-store.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

export const LinkTokenText = Type.String({
  maxLength: 200,
  description: 'The part of the link after `#`.',
})

const LinkRecord = Type.Object(
  {
    kind: Type.Enum(['INVITATION', 'RESET'], { description: 'What the link is for.' }),
    email: Type.String({ description: 'The email address of the account.' }),
    companyName: Type.String({ description: 'The name of the company.' }),
    role: Type.Optional(
      Type.Enum([...ROLES], { description: 'The role that an invitation grants.' }),
    ),
  },
  { ...STRICT, description: 'What the link is for.' },
)

/**
 * POST /dashboard/links/look: shows what a link is for. The token is in the body, because URLs are logged.
 */
export const getLink = defineRoute({
  method: 'POST',
  path: '/dashboard/links/look',
  public: { throttle: 'link' },
  summary: 'Get a one-time link',
  description:
    'Returns what the link is for, without using it. The response is the same for unknown, used and expired links.',
  body: Type.Object({ token: LinkTokenText }, { ...STRICT, description: 'The link.' }),
  errors: ['not_found'],
  response: LinkRecord,
  handle:
    (deps: Pick<DashboardDeps, 'dbFast' | 'clock' | 'login'>) =>
    async ({ body, clientAddress: address }) => {
      const link = await deps.login.throttle.runAdmitted('link', { address }, async () => {
        const found = await findLink(deps.dbFast, body.token, deps.clock())
        if (!found) throw linkNotFoundError()
        return found
      })
      const { kind, email, companyName } = link
      return { kind, email, companyName, ...(kind === 'INVITATION' && { role: link.role }) }
    },
})

export function linkNotFoundError(): ApiError {
  return new ApiError('not_found', {
    message: 'This link is not valid. It may have expired, or was already used. Request a new one.',
  })
}
