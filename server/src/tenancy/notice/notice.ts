import type { CompanyId, Id, UserId, WorkspaceId } from '../../platform/id.ts'
import { isAllowed, type Permission } from '../policy.ts'
import type { Role } from '../member/user-store.ts'

export type NoticeId = Id<'notice'>

export const NOTICE_KINDS = [
  'WEBHOOK_FAILING',
  'WEBHOOK_DISABLED',
  'CHAIN_BROKEN',
  'VERIFY_FAILED',
  'KEY_EXPIRING',
  'KEY_USED_AFTER_REPLACEMENT',
  'EXPORT_FAILED',
  'EXPORT_EXPIRED',
  'LIMIT_NEAR',
] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

export const NOTICE_SEVERITIES = ['CRITICAL', 'WARNING', 'INFO'] as const
type NoticeSeverity = (typeof NOTICE_SEVERITIES)[number]

type KindRule = {
  severity: NoticeSeverity
  /** What a member must be allowed to do to see it. */
  permission: Permission
  /** Limits on the number of mails and of kept notices don't apply, so that other notices can't suppress it. */
  isUnlimited?: true
  /** The cause is a state that the notice worker sees end. Other causes happen once. */
  isLasting?: true
}

export const NOTICE_RULES: Readonly<Record<NoticeKind, KindRule>> = {
  WEBHOOK_FAILING: { severity: 'WARNING', permission: 'webhooks.read', isLasting: true },
  WEBHOOK_DISABLED: { severity: 'CRITICAL', permission: 'webhooks.read' },
  CHAIN_BROKEN: { severity: 'CRITICAL', permission: 'integrity.read', isUnlimited: true },
  VERIFY_FAILED: { severity: 'WARNING', permission: 'integrity.read' },
  KEY_EXPIRING: { severity: 'WARNING', permission: 'keys.read' },
  KEY_USED_AFTER_REPLACEMENT: { severity: 'WARNING', permission: 'keys.read' },
  EXPORT_FAILED: { severity: 'WARNING', permission: 'exports.read' },
  EXPORT_EXPIRED: { severity: 'INFO', permission: 'exports.read' },
  LIMIT_NEAR: { severity: 'INFO', permission: 'company.manage', isLasting: true },
}

/** What a node found. It becomes a notice unless its cause already has one. */
export type NoticeDraft = {
  companyId: CompanyId
  kind: NoticeKind
  /** Identifies the cause among those of the company with the same kind. */
  cause: string
  /** Null if it isn't about a single workspace. */
  workspaceId: WorkspaceId | null
  /** If there is no workspace: the member who sees it beside those with access to the whole company. */
  userId?: UserId | null
  /** Complete sentences. */
  message: string
  /** The path of a page in the dashboard. */
  link: string
}

export type Notice = Omit<NoticeDraft, 'cause' | 'userId'> & {
  id: NoticeId
  userId: UserId | null
  createdAt: Date
}

export const UNLIMITED_KINDS = NOTICE_KINDS.filter((kind) => NOTICE_RULES[kind].isUnlimited)

/** The kinds that members with this role can see. */
export function kindsFor(role: Role): NoticeKind[] {
  return NOTICE_KINDS.filter((kind) => isAllowed(role, NOTICE_RULES[kind].permission))
}

type Recipient = { id: UserId; role: Role; workspaceIds: readonly WorkspaceId[] | null }

/** Whether a member can see a notice of their company. `notice-store.ts` has the same rule in SQL. */
export function canSeeNotice(
  { id, role, workspaceIds }: Recipient,
  notice: Pick<Notice, 'kind' | 'workspaceId' | 'userId'>,
): boolean {
  if (!isAllowed(role, NOTICE_RULES[notice.kind].permission)) return false
  if (workspaceIds === null) return true
  if (notice.workspaceId === null) return notice.userId === id
  return workspaceIds.includes(notice.workspaceId)
}

export function isNoticeKind(text: string): text is NoticeKind {
  return NOTICE_KINDS.some((kind) => kind === text)
}

/** A time in a message. The reader's time zone isn't known yet. */
export function timeText(time: Date): string {
  return `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
