import type { CompanyId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import type { Plan } from './plans.ts'

export async function insertCompany(
  db: Queryable,
  company: { id: CompanyId; name: string; plan: Plan; allowlist: string[] },
): Promise<void> {
  await db.insertInto('company').values(company).execute()
}

/** True when the company exists. */
export async function updatePlan(
  db: Queryable,
  { companyId, plan }: { companyId: CompanyId; plan: Plan },
): Promise<boolean> {
  const result = await db
    .updateTable('company')
    .set({ plan })
    .where('id', '=', companyId)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Serialises what counts against a company's bounds: two creations cannot both be the last allowed. */
export async function lockCompany(db: Queryable, companyId: CompanyId): Promise<boolean> {
  const row = await db
    .selectFrom('company')
    .select('id')
    .where('id', '=', companyId)
    .forUpdate()
    .executeTakeFirst()
  return row !== undefined
}

export async function hasCompanies(db: Queryable): Promise<boolean> {
  const row = await db.selectFrom('company').select('id').limit(1).executeTakeFirst()
  return row !== undefined
}
