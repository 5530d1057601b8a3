import { type CompanyId, randomHex } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { Clock } from '../platform/time/clock.ts'
import type { AuditEntry, Caller, ServiceAudit } from '../tenancy/caller.ts'
import { getSystemWorkspace } from '../tenancy/workspace/workspace-store.ts'
import { appendInTransaction } from './append-in-transaction.ts'

/** Who made a change, and from where. */
export type AuditOrigin = {
  companyId: CompanyId
  /** `api` for keys, `dashboard` for members, the operator and the service. */
  category: 'dashboard' | 'api'
  actor: { id?: string; email?: string; role?: string }
  /** Added to the metadata of every entry. The operator's address is `command line`, and the service has none. */
  details: { address?: string; keyName?: string }
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

/** Returns a function that writes entries of one origin, and keeps nothing else in memory. */
export function recorderOf(origin: AuditOrigin, clock: Clock): Caller['record'] {
  return (trx, entry) => writeAuditEntry(trx, origin, entry, clock())
}

/** The origin of a change that no request made. It has a trace ID of its own. */
export function originWithoutRequest(
  companyId: CompanyId,
  actor: { id: string; role: string },
  details: AuditOrigin['details'] = {},
): AuditOrigin {
  return { companyId, category: 'dashboard', actor, details, traceId: randomHex(16) }
}

export function createServiceAudit(clock: Clock): ServiceAudit {
  return async (trx, companyId, entries) => {
    const origin = originWithoutRequest(companyId, { id: 'annals', role: 'service' })
    for (const entry of entries) await writeAuditEntry(trx, origin, entry, clock())
  }
}
