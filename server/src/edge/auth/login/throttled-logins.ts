import { hasEventAbout } from '../../../ledger/recent-event-store.ts'
import { CountedReports } from '../../../platform/scheduling/counted-reports.ts'
import { HOUR_MS } from '../../../platform/time/time-units.ts'
import { type Account, findAccount } from '../../../tenancy/member/user-store.ts'
import { getSystemWorkspace } from '../../../tenancy/workspace/workspace-store.ts'
import { audited } from '../../dashboard/member-caller.ts'
import type { ReportDeps } from './login-failures.ts'

type ThrottledLogin = { email: string; address: string; traceId: string }

/**
 * Reports sign-ins that were refused because their account had too many attempts: at most one audit entry per
 * account and hour from all nodes together, written when the hour is over. Accounts are looked up only here,
 * so neither the response nor its time reveals whether one exists. Unknown accounts have no entry.
 */
export function startThrottledLogins(deps: ReportDeps): CountedReports<ThrottledLogin> {
  const { db, monotonic, logger } = deps
  return new CountedReports({
    name: 'throttled-logins',
    delayMs: HOUR_MS,
    monotonic,
    logger,
    keyOf: ({ email }) => email.toLowerCase(),
    isKnown: async ({ email }) => (await findAccount(db, email)) !== null,
    report: async (login, attempts) => {
      const account = await findAccount(db, login.email)
      return account === null || (await writeThrottled(deps, account, login, attempts))
    },
  })
}

/** Returns false if the account has an entry in this hour. The company's lock makes nodes take turns. */
async function writeThrottled(
  deps: ReportDeps,
  { companyId, userId, email }: Account,
  { address, traceId }: ThrottledLogin,
  attempts: number,
): Promise<boolean> {
  const actor = { companyId, userId: null, email, role: null, address, traceId }
  return await audited(deps, actor, async (trx, record) => {
    const workspaceId = await getSystemWorkspace(trx, companyId)
    const action = 'LOGIN_THROTTLED' as const
    const about = { workspaceId, action, resourceId: userId }
    const nowMs = deps.clock()
    if (await hasEventAbout(trx, about, { nowMs, withinMs: HOUR_MS })) return false
    record({ action, resource: { type: 'user', id: userId }, metadata: { attempts } })
    return true
  })
}
