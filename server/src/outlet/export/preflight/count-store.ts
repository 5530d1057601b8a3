import { sql } from 'kysely'
import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import { filterConditions } from '../../../ledger/event-store.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { ExportRange } from '../job/export-job.ts'

/** Counts the hot events of a run that match, up to `countMax`. The length of the run limits the work. */
export async function countHotEvents(
  db: Queryable,
  { workspaceId, fromSeq, toSeq }: ExportRange,
  { filter, countMax }: { filter: EventFilter; countMax: number },
): Promise<number> {
  const conditions = [
    sql`workspace_id = ${workspaceId}`,
    sql`seq >= ${fromSeq}`,
    sql`seq <= ${toSeq}`,
    ...filterConditions(filter),
  ]
  const { rows } = await sql<{ count: number }>`
    select count(*) as count
      from (select 1 from event where ${sql.join(conditions, sql` and `)} limit ${countMax}) as matching`.execute(
    db,
  )
  return rows[0]?.count ?? 0
}
