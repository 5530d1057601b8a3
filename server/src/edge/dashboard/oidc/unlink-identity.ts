import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { CompanyId, UserId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { isSameGrant } from '../../../tenancy/identity/group-grant.ts'
import { deleteIdentity, findIdentity } from '../../../tenancy/identity/identity-store.ts'
import { findMember } from '../../../tenancy/member/member-store.ts'
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
    'Removes the link between the account of the signed-in member and the identity provider. Refused if the member has no password, or if their role comes from a group. The next sign-in at the identity provider with the same verified email address links the account again.',
  errors: ['conflict', 'not_found'],
  response: { 204: Type.Null({ description: 'The account is no longer linked.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'provider'>) => async (request) => {
    const issuer = deps.provider?.issuer
    if (issuer === undefined) throw notLinkedError()
    const { companyId, userId, email } = request.viewer
    await audited(deps, actorOf(request), async (trx, record) => {
      const account = await findAccount(trx, email)
      if (!account || account.passwordHash === null) throw noPasswordError()
      if (!(await lockAccount(trx, account))) throw noPasswordError()
      await refuseGroupRole(trx, { companyId, userId, issuer })
      const link = await deleteIdentity(trx, { userId, issuer })
      if (!link) throw notLinkedError()
      const metadata = { issuer, subject: link.subject }
      record({ action: 'IDENTITY_UNLINKED', resource: { type: 'user', id: userId }, metadata })
    })
    return null
  },
})

/** A role that a group granted would outlive the group, because nothing would know where it came from. */
async function refuseGroupRole(
  trx: Queryable,
  { companyId, userId, issuer }: { companyId: CompanyId; userId: UserId; issuer: string },
): Promise<void> {
  const identity = await findIdentity(trx, { userId, issuer })
  const member = await findMember(trx, { companyId, userId })
  if (!identity?.granted || !member || !isSameGrant(member, identity.granted)) return
  throw new ApiError('conflict', {
    message:
      'Your role comes from a group of the identity provider, so your account has to stay linked.',
  })
}

function noPasswordError(): ApiError {
  return new ApiError('conflict', {
    message: 'You have no password, so you could no longer sign in. Set a password first.',
  })
}

function notLinkedError(): ApiError {
  return new ApiError('not_found', { message: 'Your account is not linked.' })
}
