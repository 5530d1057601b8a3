import { Type } from 'typebox'
import { findIdentity } from '../../../tenancy/identity/identity-store.ts'
import { findAccount } from '../../../tenancy/member/user-store.ts'
import { defineRoute } from '../../define-route.ts'
import { DateTime, Nullable, STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

const IdentityRecord = Type.Object(
  {
    provider: Nullable(
      Type.Object(
        { name: Type.String({ description: 'What people call the identity provider.' }) },
        { ...STRICT, description: 'Null if sign-in with OpenID Connect is not configured.' },
      ),
    ),
    link: Nullable(
      Type.Object(
        {
          linkedAt: { ...DateTime, description: 'When the account was linked.' },
          usedAt: Type.String({ format: 'date-time', description: 'When the link was last used.' }),
        },
        { ...STRICT, description: 'Null if the account is not linked to the identity provider.' },
      ),
    ),
    hasPassword: Type.Boolean({ description: 'Whether the member can sign in with a password.' }),
  },
  { ...STRICT, description: 'How the member signs in.' },
)

/** GET /dashboard/identity: how the member signs in. */
export const getIdentity = defineRoute({
  method: 'GET',
  path: '/dashboard/identity',
  member: 'self.enroll',
  summary: 'Get your ways to sign in',
  description:
    'Returns whether the signed-in member has a password, and whether their account is linked to the identity provider.',
  response: IdentityRecord,
  handle:
    ({ db, provider }: Pick<DashboardDeps, 'db' | 'provider'>) =>
    async ({ viewer: { userId, email } }) => {
      const account = await findAccount(db, email)
      const link = provider && (await findIdentity(db, { userId, issuer: provider.issuer }))
      return {
        provider: provider && { name: provider.name },
        link: link && {
          linkedAt: link.linkedAt.toISOString(),
          usedAt: link.usedAt.toISOString(),
        },
        hasPassword: account !== null && account.passwordHash !== null,
      }
    },
})
