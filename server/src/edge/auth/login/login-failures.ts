import type { Clock, MonotonicClock } from '../../../platform/time/clock.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { CountedReports } from '../../../platform/scheduling/counted-reports.ts'
import type { Account } from '../../../tenancy/member/user-store.ts'
import { audited } from '../../dashboard/member-caller.ts'

type FailedAccount = Pick<Account, 'companyId' | 'userId' | 'email'>
type Failure = {
  account: FailedAccount | null
  address: string
  traceId: string
  /** Whether the password was right and the second factor wrong. */
  isSecondStep?: true
  /** Whether the password was right, but the company's allowlist excludes the address. */
  isOutsideAllowlist?: true
  /** Another person than the one that the account is linked to signed in at the identity provider. */
  via?: 'OPENID_CONNECT'
}

export type ReportDeps = {
  db: Queryable
  clock: Clock
  monotonic: MonotonicClock
  logger: Logger
}

/**
 * Reports failed logins once per minute. Failures of an account go to its company's audit log. Failures
 * without an account go to the service log, by address. Nothing is written during the request, so response
 * times don't reveal whether the account exists.
 */
export function startLoginFailures(deps: ReportDeps): CountedReports<Failure> {
  const { monotonic, logger } = deps
  return new CountedReports({
    name: 'login-failures',
    monotonic,
    logger,
    keyOf: ({ account, address, isSecondStep, isOutsideAllowlist, via = '' }) =>
      `${isSecondStep ? 'second step ' : via}${isOutsideAllowlist ? 'outside ' : ''}${account?.userId ?? address}`,
    report: async (failure, attempts) => {
      const { account, address, traceId } = failure
      if (account) await writeFailures(deps, account, failure, attempts)
      else logger.info({ event: 'login.refused', address, attempts, traceId })
      return true
    },
  })
}

/** The caller hasn't proved to be the member, so the member is the resource and the actor has no user id. */
async function writeFailures(
  deps: ReportDeps,
  { companyId, userId, email }: FailedAccount,
  { address, traceId, isSecondStep, isOutsideAllowlist, via }: Failure,
  attempts: number,
): Promise<void> {
  const actor = { companyId, userId: null, email, role: null, address, traceId }
  await audited(deps, actor, async (_trx, record) => {
    const resource = { type: 'user', id: userId }
    const action = isSecondStep ? 'SECOND_FACTOR_FAILED' : 'LOGIN_FAILED'
    const reason = isOutsideAllowlist && { reason: 'ADDRESS_NOT_ALLOWED' }
    record({ action, resource, metadata: { attempts, ...reason, ...(via && { via }) } })
  })
}
