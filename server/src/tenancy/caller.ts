import type { CompanyId, WorkspaceId } from '../platform/id.ts'
import type { Span } from '../platform/otlp/tracer.ts'
import type { Queryable } from '../platform/pg/database.ts'
import { withChangeTurn } from '../platform/scheduling/slot-scope.ts'

/** Who requests an operation: a key or a member. The operation is the same for both. */
export type Caller = {
  /** The id of the key or the member. */
  id: string
  companyId: CompanyId
  /** How the caller makes changes, such as `through the API`. */
  via: string
  /** The caller's request. Null or missing if it isn't sampled. */
  span?: Span | null
  /** Throws if the caller could see it with another permission. */
  canSeeWorkspace: (workspaceId: WorkspaceId) => boolean
  /**
   * Locks the company and checks the caller's access again. Call it first in every transaction that makes a
   * change. Returns a function that writes an audit entry. Call that last, because it locks the company's own
   * chain until the transaction ends.
   */
  lock: (trx: Queryable) => Promise<(entry: AuditEntry) => Promise<void>>
  /**
   * Writes an entry about what was denied to the caller, who may have lost access by then. Doesn't keep the
   * request in memory.
   */
  record: (trx: Queryable, entry: AuditEntry) => Promise<void>
}

/**
 * Makes a change and writes its audit entries in one transaction, so neither exists without the other. The
 * entries are written last, because they lock the company's own chain until the transaction ends.
 */
export async function changeAs<T>(
  caller: Pick<Caller, 'lock'>,
  db: Queryable,
  change: (trx: Queryable, record: (entry: AuditEntry) => void) => Promise<T>,
): Promise<T> {
  return await withChangeTurn(() =>
    db.transaction().execute(async (trx) => {
      const write = await caller.lock(trx)
      const entries: AuditEntry[] = []
      const result = await change(trx, (entry) => entries.push(entry))
      for (const entry of entries) await write(entry)
      return result
    }),
  )
}

/**
 * Writes entries about what the service did on its own, in the transaction of the change. Call it last, because
 * it locks the company's own chain until the transaction ends.
 */
export type ServiceAudit = (
  trx: Queryable,
  companyId: CompanyId,
  entries: readonly AuditEntry[],
) => Promise<void>

export type AuditEntry = {
  action: AuditAction
  resource?: { type: string; id?: string }
  /** What changed. Never contains a secret. */
  metadata?: Record<string, unknown>
}

/** The actions in a company's own audit log. docs/dashboard.md describes the content of each. */
export const AUDIT_ACTIONS = [
  'LOGIN_SUCCEEDED',
  'LOGIN_FAILED',
  'LOGIN_THROTTLED',
  'LOGOUT',
  'SESSIONS_ENDED',
  'PASSWORD_CHANGED',
  'PASSWORD_RESET_REQUESTED',
  'PASSWORD_RESET',
  'SECOND_FACTOR_REQUESTED',
  'SECOND_FACTOR_FAILED',
  'SECOND_FACTOR_ENABLED',
  'SECOND_FACTOR_DISABLED',
  'SECOND_FACTOR_RESET',
  'RECOVERY_CODES_CREATED',
  'IDENTITY_LINKED',
  'IDENTITY_UNLINKED',
  'GROUP_MAPPED',
  'GROUP_UNMAPPED',
  'NOTICE_MAIL_CHANGED',
  'MEMBER_INVITED',
  'INVITATION_WITHDRAWN',
  'MEMBER_JOINED',
  'MEMBER_CHANGED',
  'MEMBER_REMOVED',
  'COMPANY_CHANGED',
  'PLAN_CHANGED',
  'ALLOWLIST_CHANGED',
  'WORKSPACE_CREATED',
  'WORKSPACE_CHANGED',
  'PROJECT_CREATED',
  'PROJECT_CHANGED',
  'KEY_CREATED',
  'KEY_CHANGED',
  'KEY_ROTATED',
  'KEY_REVOKED',
  'WEBHOOK_CREATED',
  'WEBHOOK_CHANGED',
  'WEBHOOK_DELETED',
  'WEBHOOK_ENABLED',
  'WEBHOOK_DISABLED',
  'WEBHOOK_SECRET_ROTATED',
  'WEBHOOK_TESTED',
  'WEBHOOK_REDELIVERED',
  'VIEW_CREATED',
  'VIEW_CHANGED',
  'VIEW_DELETED',
  'EXPORT_REQUESTED',
  'EXPORT_RERUN',
  'EXPORT_CANCELED',
  'EXPORT_DOWNLOAD_REFUSED',
  'EXPORT_DOWNLOAD_STARTED',
  'EXPORT_DOWNLOAD_CUT',
  'EXPORT_DOWNLOADED',
  'EXPORT_STORED',
  'EXPORT_FAILED',
  'EXPORT_EXPIRED',
  'EXPORT_TEMPLATE_CREATED',
  'EXPORT_TEMPLATE_CHANGED',
  'EXPORT_TEMPLATE_DELETED',
  'EXPORT_SCHEDULE_SET',
  'EXPORT_SCHEDULE_STOPPED',
  'VERIFY_STARTED',
  'VERIFY_CANCELED',
  'VERIFY_FINISHED',
  'ARCHIVE_FAILED',
  'SIGNING_KEY_CHANGED',
  'LEDGER_FORK_ACCEPTED',
] as const
type AuditAction = (typeof AUDIT_ACTIONS)[number]
