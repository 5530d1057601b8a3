import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../../errors.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { verifyPassword } from '../../../tenancy/sign-in/password.ts'
import { newRecoveryCodes, recoveryHash } from '../../../tenancy/sign-in/recovery-code.ts'
import { findAccount, lockAccount } from '../../../tenancy/member/user-store.ts'
import { useSecondFactor } from '../../../tenancy/sign-in/use-second-factor.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { wrongPassword } from '../session/change-password.ts'

type ConfirmDeps = Pick<DashboardDeps, 'db' | 'clock' | 'login' | 'factorBox'>

/**
 * Checks the password of the signed-in member, because their browser may have been left open. Returns its
 * hash for `lockOwnAccount`.
 */
export async function checkOwnPassword(
  { db, login }: Pick<ConfirmDeps, 'db' | 'login'>,
  { viewer, clientAddress: address }: FastifyRequest,
  password: string,
): Promise<string> {
  const attempt = { address, account: viewer.email }
  return await login.throttle.run('login', attempt, () =>
    login.hash(attempt, async () => {
      const account = await findAccount(db, viewer.email)
      const isRight = await verifyPassword(password, account?.passwordHash ?? null)
      if (!account || !isRight) throw wrongPassword()
      return account.passwordHash
    }),
  )
}

/** Refuses the change if the password was changed after it was checked. */
export async function lockOwnAccount(
  trx: Queryable,
  { viewer: { userId } }: FastifyRequest,
  passwordHash: string,
): Promise<void> {
  if (!(await lockAccount(trx, { userId, passwordHash }))) throw wrongPassword()
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
