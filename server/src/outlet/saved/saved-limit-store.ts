import { sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import type { CompanyId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { lockCompany } from '../../tenancy/company-store.ts'

/**
 * Limits the views or templates of a company. Call it inside the transaction that adds one: it locks the
 * company until the transaction ends.
 */
export async function refuseTooManySaved(
  trx: Queryable,
  table: 'explorer_view' | 'export_template',
  { companyId, max, noun }: { companyId: CompanyId; max: number; noun: string },
): Promise<void> {
  await lockCompany(trx, companyId)
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(table)} where company_id = ${companyId}`.execute(trx)
  if ((rows[0]?.count ?? 0) < max) return
  throw new ApiError('conflict', {
    message: `A company can have at most ${max} ${noun}. Delete one first.`,
  })
}
