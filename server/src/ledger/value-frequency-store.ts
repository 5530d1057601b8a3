import { sql } from 'kysely'
import type { WorkspaceId } from '../platform/id.ts'
import { KEEP_PLAN } from '../platform/kept-plan.ts'
import type { Queryable } from '../platform/pg.ts'
import type { RollupHead } from './rollup-store.ts'

/** So many values of a field are marked as frequent at most, so many when the marks are made. */
const FREQUENT_MAX = 4_000
const FREQUENT_AIM = 2_000
/** Fewer than these are too few to find the first values of a list among them. */
const FREQUENT_MIN = 500

/**
 * After a run was counted: `head` is where the roll-up was, `seenSeq` up to where it has seen now.
 * Fields that somebody else counted since they were marked, or with too many marks, are marked anew;
 * `sparse`: also those with too few, after counts went down; `all`: every one.
 *
 * Beside a program that does not mark, a value that it counts back in after a change to a larger plan is
 * missing among the first ones until its next event is counted.
 */
export async function settleFrequent(
  trx: Queryable,
  {
    workspaceId,
    head,
    seenSeq,
    remark,
  }: {
    workspaceId: WorkspaceId
    head: RollupHead
    seenSeq: number
    remark: 'few' | 'sparse' | 'all'
  },
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
       and (f.frequent_seq <> ${head.seenSeq}
            or m.marked > ${sql.lit(FREQUENT_MAX)}
            or ${remark === 'all'}
            or ${remark === 'sparse'} and f.frequent_from > 2 and m.marked < ${sql.lit(FREQUENT_MIN)})`.execute(
    trx,
  )
  for (const { field } of rows) await markFrequent(trx, workspaceId, field)
  await sql`
    ${KEEP_PLAN}
    update event_field set frequent_seq = ${seenSeq}
     where workspace_id = ${workspaceId} and frequent_seq <> ${seenSeq}`.execute(trx)
}

/** Marks the values with more events than the first one that is too many. */
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
         order by events desc offset ${sql.lit(FREQUENT_AIM)} limit 1), 1) as events
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
