import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { deleteResets } from '../../../tenancy/member/one-time-link-store.ts'
import { hashPassword, verifyPassword } from '../../../tenancy/sign-in/password.ts'
import { deleteSessions } from '../../../tenancy/sign-in/session-store.ts'
import { deleteChallenges } from '../../../tenancy/sign-in/sign-in-challenge-store.ts'
import { findAccount, lockAccount, setPasswordHash } from '../../../tenancy/member/user-store.ts'
import { defineRoute } from '../../define-route.ts'
import { STRICT } from '../../schema/common.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { NewPassword, PasswordText, refuseBadPassword } from './open-session.ts'

const PasswordChange = Type.Object(
  { currentPassword: PasswordText, newPassword: NewPassword },
  STRICT,
)

type PasswordDeps = Pick<DashboardDeps, 'db' | 'clock' | 'login'>

/** POST /dashboard/password: sets a new password and ends the member's other sessions. */
export const changePassword = defineRoute({
  method: 'POST',
  path: '/dashboard/password',
  member: 'self.manage',
  summary: 'Change your password',
  description: 'Ends all other sessions of the signed-in member.',
  body: PasswordChange,
  response: Type.Object(
    { endedSessions: Type.Integer({ description: 'How many sessions ended.' }) },
    { ...STRICT, description: 'The password is changed.' },
  ),
  handle: (deps: PasswordDeps) => async (request) => {
    const { viewer, body } = request
    refuseBadPassword(body.newPassword, { email: viewer.email, path: '/newPassword' })
    if (body.newPassword === body.currentPassword)
      throw invalidFieldError('/newPassword', 'is the same as the old one')
    const attempt = { address: request.clientAddress, account: viewer.email }
    const hashes = await deps.login.throttle.run('login', attempt, () =>
      checkAndHash(deps, attempt, body),
    )
    const endedSessions = await audited(deps, actorOf(request), async (trx, record) => {
      const { userId, companyId, sessionId } = viewer
      if (!(await lockAccount(trx, { userId, passwordHash: hashes.from })))
        throw wrongPasswordError()
      await setPasswordHash(trx, { userId, passwordHash: hashes.to })
      await deleteResets(trx, { companyId, userId })
      await deleteChallenges(trx, userId)
      const count = await deleteSessions(trx, { userId, except: sessionId })
      const resource = { type: 'user', id: userId }
      record({ action: 'PASSWORD_CHANGED', resource, metadata: { endedSessions: count } })
      return count
    })
    return { endedSessions }
  },
})

async function checkAndHash(
  { db, login }: PasswordDeps,
  attempt: { address: string; account: string },
  { currentPassword, newPassword }: { currentPassword: string; newPassword: string },
): Promise<{ from: string; to: string }> {
  return await login.hash(attempt, async () => {
    const account = await findAccount(db, attempt.account)
    const from = account?.passwordHash ?? null
    if (!(await verifyPassword(currentPassword, from)) || from === null) throw wrongPasswordError()
    return { from, to: await hashPassword(newPassword) }
  })
}

/** Not a 401: the caller is signed in and stays signed in. */
export function wrongPasswordError(): ApiError {
  return invalidFieldError('/currentPassword', 'is not your current password')
}

function invalidFieldError(path: string, message: string): ApiError {
  const name = path === '/newPassword' ? 'The new password' : 'This'
  return new ApiError('invalid_request', {
    message: `${name} ${message}.`,
    details: [{ path, message }],
  })
}
