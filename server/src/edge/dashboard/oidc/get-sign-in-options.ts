import { Type } from 'typebox'
import { defineRoute } from '../../define-route.ts'
import { Nullable, STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** GET /dashboard/sign-in-options: what the sign-in page offers besides a password. */
export const getSignInOptions = defineRoute({
  method: 'GET',
  path: '/dashboard/sign-in-options',
  public: { throttle: 'signInOptions' },
  summary: 'List ways to sign in',
  description: 'Returns the identity provider that people can sign in with, if there is one.',
  response: Type.Object(
    {
      provider: Nullable(
        Type.Object(
          { name: Type.String({ description: 'What people call the identity provider.' }) },
          { ...STRICT, description: 'Null if sign-in with OpenID Connect is not configured.' },
        ),
      ),
    },
    { ...STRICT, description: 'The ways to sign in.' },
  ),
  handle:
    ({ provider }: Pick<DashboardDeps, 'provider'>) =>
    async () => ({ provider: provider && { name: provider.name } }),
})
