import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { MINUTE_MS } from '../../../platform/time/time-units.ts'
import { verifyPassword } from '../../../tenancy/sign-in/password.ts'
import { newRecoveryCodes, recoveryHash } from '../../../tenancy/sign-in/recovery-code.ts'
import { isSessionSince } from '../../../tenancy/sign-in/session-store.ts'
import { findAccount, lockAccount } from '../../../tenancy/member/user-store.ts'
import { useSecondFactor } from '../../../tenancy/sign-in/use-second-factor.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { wrongPasswordError } from '../session/change-password.ts'

type ConfirmDeps = Pick<DashboardDeps, 'db' | 'clock' | 'login' | 'factorBox'>

/** A member without a password must have signed in this recently. */
const FRESH_SIGN_IN_MS = 10 * MINUTE_MS

/** Members who have one must send it. Members without a password must have signed in recently. */
export const OwnPassword = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 1_024,
    description:
      'The current password. Required if you have one. Otherwise, you must have signed in within the last ten minutes.',
  }),
)

/**
 * Checks the password of the signed-in member, because their browser may have been left open. For a member
 * without a password, the sign-in at the identity provider takes its place if it was recent. Returns the hash
 * for `lockOwnAccount`.
 */
export async function checkOwnPassword(
  { db, clock, login }: Pick<ConfirmDeps, 'db' | 'clock' | 'login'>,
  { viewer, clientAddress: address }: FastifyRequest,
  password: string | undefined,
): Promise<string | null> {
  if (password === undefined) {
    const account = await findAccount(db, viewer.email)
    if (!account || account.passwordHash !== null) throw wrongPasswordError()
    const since = new Date(clock() - FRESH_SIGN_IN_MS)
    if (!(await isSessionSince(db, viewer.sessionId, since))) throw signInAgainError()
    return null
  }
  const attempt = { address, account: viewer.email }
  return await login.throttle.run('login', attempt, () =>
    login.hash(attempt, async () => {
      const account = await findAccount(db, viewer.email)
      const isRight = await verifyPassword(password, account?.passwordHash ?? null)
      if (!account || !isRight) throw wrongPasswordError()
      return account.passwordHash
    }),
  )
}

/** Refuses the change if the password was changed after it was checked. */
export async function lockOwnAccount(
  trx: Queryable,
  { viewer: { userId } }: FastifyRequest,
  passwordHash: string | null,
): Promise<void> {
  if (!(await lockAccount(trx, { userId, passwordHash }))) throw wrongPasswordError()
}

function signInAgainError(): ApiError {
  return new ApiError('conflict', {
    message:
      'You have no password, and you signed in more than ten minutes ago. Sign out, sign in again, then retry.',
  })
}

/** Runs a change that requires the second factor of the signed-in member. Throttled like the sign-in. */
export async function withOwnFactor<T>(
  { login }: Pick<ConfirmDeps, 'login'>,
  { viewer, clientAddress: address, id: traceId }: FastifyRequest,
  change: () => Promise<T>,
): Promise<T> {
  const { userId, companyId, email } = viewer
  return await login.throttle.run('code', { address, account: email }, async () => {
    try {
      return await change()
    } catch (error) {
      if (error instanceof WrongFactorError) {
        const account = { userId, companyId, email }
        login.failures.count({ account, address, traceId, isSecondStep: true })
      }
      throw error
    }
  })
}

/** Uses the code up, in the transaction of the change. */
export async function useOwnFactor(
  { clock, factorBox }: Pick<ConfirmDeps, 'clock' | 'factorBox'>,
  trx: Queryable,
  { viewer: { userId } }: FastifyRequest,
  code: string,
): Promise<void> {
  const use = await useSecondFactor(trx, factorBox, { userId, code, nowMs: clock() })
  if (!use) throw new WrongFactorError()
}

/** Not a 401: the caller is signed in and stays signed in. */
export class WrongFactorError extends ApiError {
  constructor() {
    const message = 'is wrong or was already used'
    super('invalid_request', {
      message: `The code ${message}. Enter the current one.`,
      details: [{ path: '/code', message }],
    })
  }
}

/** New codes to show once, and their hashes to store. */
export function createRecoveryCodeSet(): { recoveryCodes: string[]; recoveryHashes: Buffer[] } {
  const recoveryCodes = newRecoveryCodes()
  const recoveryHashes = recoveryCodes.map(recoveryHash).filter((hash) => hash !== null)
  return { recoveryCodes, recoveryHashes }
}
