import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/**
 * The maximum number of values per field that are marked as frequent, and the
 * target when they are marked again.
 */
const FREQUENT_MAX = 4_000
const FREQUENT_TARGET = 2_000
/** With fewer frequent values than this, a list can't find its first values among them. */
const FREQUENT_MIN = 500

/**
 * Call this after a run is counted. Marks the values of a field again if too many are marked; with `sparse`,
 * also if too few are marked after counts went down; with `all`, always.
 */
export async function settleFrequent(
  trx: Queryable,
  workspaceId: WorkspaceId,
  remark: 'few' | 'sparse' | 'all',
): Promise<void> {
  const { rows } = await sql<{ field: string }>`
    ${KEEP_PLAN}
    select f.field
      from event_field f
     cross join lateral (
       select count(*) as marked from (
         select from event_value v
          where v.workspace_id = f.workspace_id and v.field = f.field and v.is_frequent
          limit ${sql.lit(FREQUENT_MAX + 1)}) as few) as m
     where f.workspace_id = ${workspaceId}
       and (m.marked > ${sql.lit(FREQUENT_MAX)}
            or ${remark === 'all'}
            or ${remark === 'sparse'} and f.frequent_from > 2 and m.marked < ${sql.lit(FREQUENT_MIN)})`.execute(
    trx,
  )
  for (const { field } of rows) await markFrequent(trx, workspaceId, field)
}

/** Marks the values with more events than the first value beyond the target. */
async function markFrequent(
  trx: Queryable,
  workspaceId: WorkspaceId,
  field: string,
): Promise<void> {
  await sql`
    with bound as materialized (
      select coalesce(1 + (
        select events from event_value
         where workspace_id = ${workspaceId} and field = ${field}
         order by events desc offset ${sql.lit(FREQUENT_TARGET)} limit 1), 1) as events
    ), marked as (
      update event_value v set is_frequent = not v.is_frequent
        from bound b
       where v.workspace_id = ${workspaceId} and v.field = ${field}
         and v.is_frequent <> (v.events >= b.events)
    )
    update event_field f set frequent_from = b.events
      from bound b
     where f.workspace_id = ${workspaceId} and f.field = ${field}`.execute(trx)
}
