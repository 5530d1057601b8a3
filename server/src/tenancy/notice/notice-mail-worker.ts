import type { Logger } from '../../platform/logger.ts'
import { type MailOutcome, tryMail } from '../../platform/mailer.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { CompanyTurns } from '../../platform/scheduling/company-turns.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { Secret } from '../../platform/secret/secret.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../platform/time/time-units.ts'
import { findMember, listCompanyMembers } from '../member/member-store.ts'
import { canSeeNotice, UNLIMITED_KINDS } from './notice.ts'
import { MAIL_WAIT_MS_MAX, nextMailAt, noticeMail } from './notice-mail.ts'
import {
  claimMail,
  type ClaimedMail,
  findMailContent,
  type MailEnd,
  planMails,
  settleMail,
  takeUnplannedNotice,
} from './notice-mail-store.ts'

const INTERVAL_MS = 5_000
/** Older notices get no mail, for example if a mail server is configured for the first time. */
const NOTICE_AGE_MS_MAX = DAY_MS
/** Per node and run, so at most 240 mails per minute. */
const MAILS_PER_RUN_MAX = 20
const NOTICES_PER_RUN_MAX = 100
export const MAILS_PER_MEMBER_AND_HOUR_MAX = 20
const MAILS_PER_COMPANY_AND_HOUR_MAX = 1_000

type WorkerDeps = {
  db: Queryable
  clock: Clock
  logger: Logger
  smtpUrl: Secret<string>
  /** The base URL of the links in the mails. */
  baseUrl: string
  cutSignal: AbortSignal
}

/**
 * Sends notices by mail. It has a loop and connections of its own, so a mail server that is slow or down delays
 * neither other work nor the mails of invitations and resets.
 */
export function startNoticeMailWorker(deps: WorkerDeps): Loop {
  const ended: EndedMail[] = []
  const turns = new CompanyTurns()
  const run = async (signal: AbortSignal): Promise<void> => {
    await settleEnded(deps, ended)
    let planned = 0
    while (planned < NOTICES_PER_RUN_MAX && !signal.aborted && (await planNext(deps))) planned += 1
    let sent = 0
    while (sent < MAILS_PER_RUN_MAX && !signal.aborted && (await sendNext(deps, { ended, turns })))
      sent += 1
  }
  return new Loop({ name: 'notice-mail', everyMs: INTERVAL_MS, logger: deps.logger, run })
}

/** Decides who gets a notice by mail, once per notice. False if there is none left. */
async function planNext({ db, clock }: WorkerDeps): Promise<boolean> {
  const nowMs = clock()
  const now = new Date(nowMs)
  return await db.transaction().execute(async (trx) => {
    const createdSince = new Date(nowMs - NOTICE_AGE_MS_MAX)
    const notice = await takeUnplannedNotice(trx, { now, createdSince })
    if (!notice) return false
    const members = await listCompanyMembers(trx, notice.companyId)
    const userIds = members.filter((member) => canSeeNotice(member, notice)).map(({ id }) => id)
    await planMails(trx, notice, {
      userIds,
      now,
      hourStart: new Date(nowMs - HOUR_MS),
      perMemberMax: MAILS_PER_MEMBER_AND_HOUR_MAX,
      perCompanyMax: MAILS_PER_COMPANY_AND_HOUR_MAX,
      isUnlimited: UNLIMITED_KINDS.includes(notice.kind),
    })
    return true
  })
}

/** A mail whose outcome is known. It stays in the list while the database is unavailable. */
type EndedMail = { claimed: ClaimedMail; end: MailEnd }

async function settleEnded({ db }: WorkerDeps, ended: EndedMail[]): Promise<void> {
  for (let [mail] = ended; mail; [mail] = ended) {
    await settleMail(db, mail.claimed, mail.end)
    ended.shift()
  }
}

/** False if no mail is due, or if the server can't be reached, so that the rest waits for the next run. */
async function sendNext(
  deps: WorkerDeps,
  { ended, turns }: { ended: EndedMail[]; turns: CompanyTurns },
): Promise<boolean> {
  const { db, clock, logger, smtpUrl, cutSignal } = deps
  // One transaction, so that a mail that can't be read isn't claimed.
  const next = await db.transaction().execute(async (trx) => {
    const nowMs = clock()
    const times = { now: new Date(nowMs), dueMax: new Date(nowMs + MAIL_WAIT_MS_MAX) }
    const claimed = await turns.next(
      (except) => claimMail(trx, { ...times, except }),
      ({ companyId }) => companyId,
    )
    return claimed && { claimed, mail: await readMail({ ...deps, db: trx }, claimed) }
  })
  if (!next) return false
  const { claimed, mail } = next
  const outcome = mail && (await tryMail(smtpUrl, mail, cutSignal))
  if (outcome && outcome.kind !== 'sent') logger.error({ event: 'mail.failed', ...outcome.reason })
  const end: MailEnd = outcome ? endOf(outcome, claimed, clock()) : { status: 'FAILED' }
  ended.push({ claimed, end })
  await settleEnded(deps, ended)
  // If the server can't be reached, the next mail would fail too.
  return !outcome || outcome.kind === 'sent' || (outcome.kind === 'refused' && outcome.isAboutMail)
}

/** Checks again that the member can see the notice and wants it by mail. Null if not. */
async function readMail({ db, baseUrl }: WorkerDeps, claimed: ClaimedMail) {
  const { companyId, userId } = claimed
  const content = await findMailContent(db, claimed)
  const member = content && (await findMember(db, { companyId, userId }))
  if (!member || !canSeeNotice(member, content)) return null
  const { workspaceName } = content
  return noticeMail(content, { to: member.email, workspaceName, baseUrl })
}

/** A mail that the server may have accepted isn't sent again. */
function endOf(outcome: MailOutcome, { attempt }: ClaimedMail, nowMs: number): MailEnd {
  if (outcome.kind === 'sent') return { status: 'SENT' }
  const retryAt =
    outcome.kind === 'refused' && outcome.isTemporary ? nextMailAt(attempt, nowMs) : null
  return retryAt ? { status: 'PENDING', retryAt } : { status: 'FAILED' }
}
