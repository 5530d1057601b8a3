import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { deleteIdentity } from '../../../tenancy/identity/identity-store.ts'
import { findAccount, lockAccount } from '../../../tenancy/member/user-store.ts'
import { defineRoute } from '../../define-route.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'

/** DELETE /dashboard/identity: the member signs in with their password from now on. */
export const unlinkIdentity = defineRoute({
  method: 'DELETE',
  path: '/dashboard/identity',
  member: 'self.manage',
  summary: 'Unlink your account',
  description:
    'Removes the link between the account of the signed-in member and the identity provider. Refused if the member has no password. The next sign-in at the identity provider with the same verified email address links the account again.',
  errors: ['conflict', 'not_found'],
  response: { 204: Type.Null({ description: 'The account is no longer linked.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'provider'>) => async (request) => {
    const issuer = deps.provider?.issuer
    if (issuer === undefined) throw notLinked()
    const { userId, email } = request.viewer
    await audited(deps, actorOf(request), async (trx, record) => {
      const account = await findAccount(trx, email)
      if (!account || account.passwordHash === null) throw noPassword()
      if (!(await lockAccount(trx, account))) throw noPassword()
      const link = await deleteIdentity(trx, { userId, issuer })
      if (!link) throw notLinked()
      const metadata = { issuer, subject: link.subject }
      record({ action: 'IDENTITY_UNLINKED', resource: { type: 'user', id: userId }, metadata })
    })
    return null
  },
})

function noPassword(): ApiError {
  return new ApiError('conflict', {
    message: 'You have no password, so you could no longer sign in. Set a password first.',
  })
}

function notLinked(): ApiError {
  return new ApiError('not_found', { message: 'Your account is not linked.' })
}
