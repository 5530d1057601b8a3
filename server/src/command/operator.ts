import { originWithoutRequest, writeAuditEntry } from '../intake/audit-entry.ts'
import type { CompanyId } from '../platform/id.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import type { Caller } from '../tenancy/caller.ts'
import { lockCompany } from '../tenancy/company-store.ts'

/** The operator, who changes a company with a command. */
export function operatorCaller(companyId: CompanyId): Pick<Caller, 'lock'> {
  const origin = originWithoutRequest(companyId, { id: 'operator', role: 'operator' })
  return {
    lock: async (trx) => {
      await lockCompany(trx, companyId)
      return (entry) => writeAuditEntry(trx, origin, entry, clock())
    },
  }
}
