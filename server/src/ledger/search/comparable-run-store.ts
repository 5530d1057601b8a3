import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { PageOrder } from '../event-page.ts'

/** How much metadata of a run a statement compares with a filter. The worst case takes about a second per MiB. */
const RUN_METADATA_BYTES_MAX = 4 * 1_024 * 1_024

/**
 * The last event of a run, read in this order, up to which a statement can compare the metadata: at least the
 * first event. PostgreSQL reads the lengths without the values.
 */
export async function findComparableEnd(
  db: Queryable,
  {
    workspaceId,
    fromSeq,
    toSeq,
    order,
  }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number; order: PageOrder },
): Promise<number> {
  const bySeq = order === 'asc' ? sql`order by seq` : sql`order by seq desc`
  const { rows } = await sql<{ seq: number }>`
    select seq
      from (select seq, sum(coalesce(octet_length(metadata), 0)) over (${bySeq}) as bytes
              from event
             where workspace_id = ${workspaceId} and seq >= ${fromSeq} and seq <= ${toSeq}) as measured
     where bytes > ${RUN_METADATA_BYTES_MAX}
     ${bySeq}
     limit 1`.execute(db)
  return rows[0]?.seq ?? (order === 'asc' ? toSeq : fromSeq)
}
