import type { CompanyId } from '../../../src/platform/id.ts'
import type { Queryable } from '../../../src/platform/pg/database.ts'
import { lockCompany } from '../../../src/tenancy/company-store.ts'
import { asOwner } from '../dashboard/console.ts'
import { query } from './engine.ts'
import type { TestApp } from '../app/start-app.ts'

/** Runs `work` in a transaction that locks the company's row, and commits it. */
export async function withCompanyLocked<T>(
  annals: TestApp,
  companyId: CompanyId,
  work: (trx: Queryable) => Promise<T>,
): Promise<T> {
  return await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      await lockCompany(trx, companyId)
      return await work(trx)
    }),
  )
}

/** The service's connections that wait for a lock, without the write probe, which can wait at any time. */
export async function countLockWaits({ database }: TestApp): Promise<number> {
  const [row] = await query(
    database.connection,
    `select count(*)::int as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
        and application_name <> 'annals write probe'`,
  )
  return Number(row?.['count'])
}
