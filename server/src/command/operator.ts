import { originWithoutRequest, writeAuditEntry } from '../intake/audit-entry.ts'
import type { CompanyId } from '../platform/id.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import type { Queryable } from '../platform/pg/database.ts'
import { type AuditEntry, type Caller, changeAs } from '../tenancy/caller.ts'
import { lockCompany } from '../tenancy/company-store.ts'

/** The operator, who changes a company with a command. */
export function operatorCaller(companyId: CompanyId): Pick<Caller, 'lock'> {
  const actor = { id: 'operator', role: 'operator' }
  const origin = originWithoutRequest(companyId, actor, { address: 'command line' })
  return {
    lock: async (trx) => {
      await lockCompany(trx, companyId)
      return (entry) => writeAuditEntry(trx, origin, entry, clock())
    },
  }
}

/** Writes an entry about what a command found, without a change. */
export async function recordAsOperator(
  db: Queryable,
  companyId: CompanyId,
  entry: AuditEntry,
): Promise<void> {
  await changeAs(operatorCaller(companyId), db, async (_trx, record) => record(entry))
}
