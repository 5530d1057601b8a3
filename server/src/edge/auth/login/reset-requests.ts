import { BackgroundQueue } from '../../../platform/scheduling/background-queue.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { Mailer } from '../../../platform/mailer.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { insertResetLink, type NewLink } from '../../../tenancy/member/one-time-link-store.ts'
import { type Account, findAccount } from '../../../tenancy/member/user-store.ts'
import { audited } from '../../dashboard/member-caller.ts'

export type ResetRequest = {
  email: string
  address: string
  traceId: string
  linkOf: (token: string) => string
}

type ResetDeps = { db: Queryable; clock: Clock; logger: Logger; mailer: Mailer }

const REQUESTS_WAITING_MAX = 1_000

/**
 * Processes requests for forgotten passwords in the background. The request is answered before the account is
 * looked up, so neither the response nor its timing reveals whether the account exists.
 */
export function startResetRequests(deps: ResetDeps): BackgroundQueue<ResetRequest> {
  const { logger } = deps
  return new BackgroundQueue({
    name: 'password-reset',
    waitingMax: REQUESTS_WAITING_MAX,
    logger,
    run: async (request) => {
      const account = await findAccount(deps.db, request.email)
      if (account) await handleRequest(deps, account, request)
      else logger.info({ event: 'reset.refused', traceId: request.traceId })
    },
  })
}

/** Without a mail server, the request still appears in the audit log, so that an admin can create a link. */
async function handleRequest(
  { db, clock, mailer }: ResetDeps,
  { companyId, userId, email }: Account,
  { address, traceId, linkOf }: ResetRequest,
): Promise<void> {
  const actor = { companyId, userId: null, email, role: null, address, traceId }
  const link = await audited({ db, clock }, actor, async (trx, record): Promise<NewLink | null> => {
    record({
      action: 'PASSWORD_RESET_REQUESTED',
      resource: { type: 'user', id: userId },
      metadata: { isMailed: mailer.isConfigured },
    })
    if (!mailer.isConfigured) return null
    return await insertResetLink(trx, { companyId, userId, email, createdBy: null, nowMs: clock() })
  })
  if (link) mailer.sendMail(resetMail(email, linkOf(link.token)))
}

function resetMail(to: string, link: string) {
  return {
    to,
    subject: 'Reset your Annals password',
    text: [
      'We received a request to reset the password of this account. To choose a new one:',
      '',
      link,
      '',
      'The link works once and expires in one hour. If you did not request it, ignore this',
      'message. Your password stays the same.',
      '',
    ].join('\n'),
  }
}
