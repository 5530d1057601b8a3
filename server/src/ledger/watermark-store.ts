import { sql } from 'kysely'
import type { WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'

/** Creates the watermark of a worker that reads chains, right before the oldest event in the table. */
export async function ensureWatermark(
  db: Queryable,
  table: 'event_type_watermark' | 'search_watermark',
  workspaceId: WorkspaceId,
): Promise<void> {
  await sql`
    insert into ${sql.table(table)} (workspace_id, floor_seq, seen_seq, advanced_at)
    select ${workspaceId}, b.seq, b.seq, now()
      from (select coalesce(
              (select min(seq) - 1 from event where workspace_id = ${workspaceId}),
              (select seq from chain_head where workspace_id = ${workspaceId}),
              0) as seq) as b
    on conflict do nothing`.execute(db)
}
