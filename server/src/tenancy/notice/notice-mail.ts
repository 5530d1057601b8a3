import type { Mail } from '../../platform/mailer.ts'
import { HOUR_MS, MINUTE_MS } from '../../platform/time/time-units.ts'
import { quoteNameForMail, sentenceForMail } from '../member/mail-address.ts'
import type { Notice, NoticeKind } from './notice.ts'

/** Fixed texts, because names in a subject could imitate another mail. */
const SUBJECTS: Readonly<Record<NoticeKind, string>> = {
  WEBHOOK_FAILING: 'A webhook is failing',
  WEBHOOK_DISABLED: 'A webhook was disabled',
  CHAIN_BROKEN: 'A chain is broken',
  VERIFY_FAILED: 'A verification could not be finished',
  KEY_EXPIRING: 'A key expires soon',
  KEY_USED_AFTER_REPLACEMENT: 'A replaced key is still used',
  EXPORT_FAILED: 'An export failed',
  EXPORT_EXPIRED: 'An export expired',
  LIMIT_NEAR: 'A limit is almost used',
}

export function noticeMail(
  { kind, message, link }: Pick<Notice, 'kind' | 'message' | 'link'>,
  { to, workspaceName, baseUrl }: { to: string; workspaceName: string | null; baseUrl: string },
): Mail {
  const text = [
    sentenceForMail(message),
    ...(workspaceName === null ? [] : [`Workspace: ${quoteNameForMail(workspaceName)}`]),
    `${baseUrl}${link}`,
    `To choose which notices you get by mail, open ${baseUrl}/app/account`,
  ]
  return { to, subject: `Annals: ${SUBJECTS[kind]}`, text: `${text.join('\n\n')}\n` }
}

/** Waits after each refused attempt. After the last one, the mail has failed. */
const WAITS_MS = [MINUTE_MS, 10 * MINUTE_MS, HOUR_MS] as const
export const MAIL_WAIT_MS_MAX = Math.max(...WAITS_MS)

/** When to try again after `attempt` was refused, or null if there are no attempts left. */
export function nextMailAt(attempt: number, nowMs: number): Date | null {
  const waitMs = WAITS_MS[attempt - 1]
  return waitMs === undefined ? null : new Date(nowMs + waitMs)
}
