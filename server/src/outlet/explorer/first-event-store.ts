import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** The earliest timestamp of the events in the table. Null if there are none. */
export async function findFirstTimestamp(
  db: Queryable,
  workspaceIds: readonly WorkspaceId[],
): Promise<Date | null> {
  const { rows } = await sql<{ ts: Date | null }>`
    select min(first.ts) as ts
      from unnest(${workspaceIds}::uuid[]) as w (id)
     cross join lateral (
       select ts from event where workspace_id = w.id order by ts limit 1) as first`.execute(db)
  return rows[0]?.ts ?? null
}
