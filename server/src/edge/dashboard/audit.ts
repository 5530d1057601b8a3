import type { FastifyRequest } from 'fastify'
import { appendInTransaction } from '../../intake/append-in-transaction.ts'
import type { Clock } from '../../platform/clock.ts'
import type { CompanyId, UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import type { Role } from '../../tenancy/user-store.ts'
import { getSystemWorkspace } from '../../tenancy/workspace-store.ts'

/** The actions of the dashboard's own audit. docs/dashboard.md lists what each tells. */
export const AUDIT_ACTIONS = [
  'LOGIN_SUCCEEDED',
  'LOGIN_FAILED',
  'LOGOUT',
  'SESSIONS_ENDED',
  'PASSWORD_CHANGED',
  'PASSWORD_RESET_REQUESTED',
  'PASSWORD_RESET',
  'MEMBER_INVITED',
  'INVITATION_WITHDRAWN',
  'MEMBER_JOINED',
  'MEMBER_CHANGED',
  'MEMBER_REMOVED',
  'COMPANY_CHANGED',
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
  'EXPORT_DOWNLOAD_STARTED',
  'EXPORT_DOWNLOADED',
  'EXPORT_TEMPLATE_CREATED',
  'EXPORT_TEMPLATE_CHANGED',
  'EXPORT_TEMPLATE_DELETED',
  'VERIFY_STARTED',
  'VERIFY_CANCELED',
] as const
export type AuditAction = (typeof AUDIT_ACTIONS)[number]

const CATEGORY = 'dashboard'

/** Who did it: of whoever is signed in, made by `actorOf`. */
export type AuditActor = {
  companyId: CompanyId
  userId: UserId | null
  email: string
  role: Role | null
  address: string
  traceId: string
}

export type AuditEntry = {
  action: AuditAction
  resource?: { type: string; id?: string }
  /** What changed, in words and numbers. Never a secret. */
  metadata?: Record<string, unknown>
}

export type AuditDeps = { db: Queryable; clock: Clock }

export function actorOf({ viewer, clientAddress, id }: FastifyRequest): AuditActor {
  const { companyId, userId, email, role } = viewer
  return { companyId, userId, email, role, address: clientAddress, traceId: id }
}

/**
 * Makes a change and writes down that it was made, in one transaction: there is no change without its
 * entry and no entry without its change. What is noted is written last, because it locks the
 * company's own chain until the end.
 */
export async function audited<T>(
  { db, clock }: AuditDeps,
  actor: AuditActor,
  change: (trx: Queryable, note: (entry: AuditEntry) => void) => Promise<T>,
): Promise<T> {
  return await db.transaction().execute(async (trx) => {
    const entries: AuditEntry[] = []
    const result = await change(trx, (entry) => entries.push(entry))
    for (const entry of entries) await writeEntry(trx, actor, entry, clock())
    return result
  })
}

/** For a change that has a transaction of its own. Call it last. */
export async function writeEntry(
  trx: Queryable,
  { companyId, userId, email, role, address, traceId }: AuditActor,
  { action, resource, metadata }: AuditEntry,
  nowMs: number,
): Promise<void> {
  const workspaceId = await getSystemWorkspace(trx, companyId)
  const event = {
    category: CATEGORY,
    action,
    actor: { ...(userId !== null && { id: userId }), email, ...(role !== null && { role }) },
    ...(resource && { resource }),
    metadata: { ...metadata, address },
  }
  await appendInTransaction(trx, event, { companyId, workspaceId, traceId }, nowMs)
}
