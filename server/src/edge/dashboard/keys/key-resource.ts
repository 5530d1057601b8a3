import type { CompanyId, KeyId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { getCompanyKey } from '../../../tenancy/key/company-key-store.ts'
import { readCompanyDetails } from '../../../tenancy/company-store.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { keyRecord } from './key-record.ts'

/** Reads the current record of a key, also inside a transaction. */
export async function readKeyRecord(
  db: Queryable,
  deps: Pick<DashboardDeps, 'keyUse'>,
  { companyId, keyId }: { companyId: CompanyId; keyId: KeyId },
  nowMs: number,
) {
  const key = await getCompanyKey(db, { companyId, keyId })
  const { allowlist } = await readCompanyDetails(db, companyId)
  return keyRecord(key, deps, { companyHasAllowlist: allowlist.entries.length > 0, nowMs })
}
