import { originWithoutRequest, writeAuditEntry } from '../intake/audit-entry.ts'
import type { CompanyId } from '../platform/id.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import type { Caller, ServiceAudit } from '../tenancy/caller.ts'
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

/** Writes audit entries about what a command found, when it changed nothing. */
export const auditAsOperator: ServiceAudit = async (trx, companyId, entries) => {
  const write = await operatorCaller(companyId).lock(trx)
  for (const entry of entries) await write(entry)
}
