import { appendInTransaction } from '../intake/append-in-transaction.ts'
import type { CompanyId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { AuditEntry } from '../tenancy/caller.ts'
import { getSystemWorkspace } from '../tenancy/workspace-store.ts'

/** Who made a change, and from where. */
export type AuditOrigin = {
  companyId: CompanyId
  /** `dashboard` for members and the operator, `api` for keys. */
  category: 'dashboard' | 'api'
  actor: { id?: string; email?: string; role?: string }
  /** Added to the metadata of every entry. */
  details: { address: string; keyName?: string }
  traceId: string
}

/** Appends an event to the company's own chain, in the transaction of the change. */
export async function writeAuditEntry(
  trx: Queryable,
  { companyId, category, actor, details, traceId }: AuditOrigin,
  { action, resource, metadata }: AuditEntry,
  nowMs: number,
): Promise<void> {
  const workspaceId = await getSystemWorkspace(trx, companyId)
  const event = {
    category,
    action,
    actor,
    ...(resource && { resource }),
    metadata: { ...metadata, ...details },
  }
  await appendInTransaction(trx, event, { companyId, workspaceId, traceId }, nowMs)
}
