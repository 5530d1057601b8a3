import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** The id of an event and its time of receipt; both null if it is not in the table. */
type EventReceipt = { id: string | null; receivedAtMs: number | null }

export type HotEdge = { afterSeq: number; headSeq: number; id: string | null }

/**
 * Reads the head's seq and the id of the event after `afterSeq`, which defaults to the floor of the roll-up.
 */
export async function readHotEdge(
  db: Queryable,
  workspaceId: WorkspaceId,
  { afterSeq }: { afterSeq: number | null },
): Promise<HotEdge> {
  const { rows } = await sql<HotEdge>`
    ${KEEP_PLAN}
    select p.seq as "afterSeq", p.head_seq as "headSeq", e.id
      from (select coalesce(${afterSeq}::bigint,
                     (select floor_seq from rollup_head where workspace_id = ${workspaceId}), 0) as seq,
                   coalesce((select seq from chain_head where workspace_id = ${workspaceId}), 0) as head_seq) as p
      left join lateral (
        select id from event
         where workspace_id = ${workspaceId} and seq = p.seq + 1) as e on true`.execute(db)
  return rows[0] ?? { afterSeq: 0, headSeq: 0, id: null }
}

export async function readReceipt(
  db: Queryable,
  workspaceId: WorkspaceId,
  seq: number,
): Promise<EventReceipt> {
  const { rows } = await sql<EventReceipt>`
    ${KEEP_PLAN}
    select id, (date_part('epoch', received_at) * 1000)::bigint as "receivedAtMs"
      from event
     where workspace_id = ${workspaceId} and seq = ${seq}`.execute(db)
  return rows[0] ?? { id: null, receivedAtMs: null }
}

/** The first event of a run in the table that was received at this time or later. Null if there is none. */
export async function findReceivedSeq(
  db: Queryable,
  { workspaceId, fromSeq, toSeq }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number },
  atMs: number,
): Promise<number | null> {
  const { rows } = await sql<{ seq: number }>`
    select seq
      from event
     where workspace_id = ${workspaceId} and seq >= ${fromSeq} and seq <= ${toSeq}
       and received_at >= ${new Date(atMs)}
     order by seq
     limit 1`.execute(db)
  return rows[0]?.seq ?? null
}

/**
 * Finds the first event with this id or a later one; one above the head if there is none. A binary search by the
 * ids, which ascend along a chain, in one statement. An event that is not in the table was archived, so it is older.
 */
export async function findSeqOfId(
  db: Queryable,
  {
    workspaceId,
    afterSeq,
    headSeq,
  }: { workspaceId: WorkspaceId; afterSeq: number; headSeq: number },
  id: string,
): Promise<number> {
  const { rows } = await sql<{ seq: number }>`
    ${KEEP_PLAN}
    with recursive search (low, high) as (
      select ${afterSeq}::bigint + 1, ${headSeq}::bigint + 1
      union all
      select case when reached then low else middle + 1 end,
             case when reached then middle else high end
        from (select low, high, middle,
                     (select id >= (select ${id}::uuid) from event
                       where workspace_id = ${workspaceId} and seq = middle) is true as reached
                from (select low, high, (low + high) / 2 as middle
                        from search
                       where low < high) as halved) as probed
    )
    select low as seq from search where low >= high limit 1`.execute(db)
  return rows[0]?.seq ?? headSeq + 1
}

/** The first of the last `rowsMax` events of a run that are in the table. Null if there are none. */
export async function findRunStart(
  db: Queryable,
  {
    workspaceId,
    fromSeq,
    toSeq,
    rowsMax,
  }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number; rowsMax: number },
): Promise<{ seq: number } | null> {
  const { rows } = await sql<{ seq: number | null }>`
    select min(seq) as seq
      from (select seq from event
             where workspace_id = ${workspaceId} and seq >= ${fromSeq} and seq <= ${toSeq}
             order by seq desc
             limit ${rowsMax}) as last`.execute(db)
  const seq = rows[0]?.seq ?? null
  return seq === null ? null : { seq }
}
