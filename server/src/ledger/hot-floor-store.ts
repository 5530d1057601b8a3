import { sql } from 'kysely'
import type { WorkspaceId } from '../platform/id.ts'
import { KEEP_PLAN } from '../platform/kept-plan.ts'
import type { Queryable } from '../platform/pg.ts'

/** When an event was received, as far as it is in the table. */
export type Receipt = { id: string | null; receivedAtMs: number | null }

/**
 * The event above a number, by default above where the roll-up begins, and the end of the chain.
 */
export async function readHotEdge(
  db: Queryable,
  workspaceId: WorkspaceId,
  { afterSeq }: { afterSeq: number | null },
): Promise<Receipt & { afterSeq: number; headSeq: number }> {
  const { rows } = await sql<Receipt & { afterSeq: number; headSeq: number }>`
    ${KEEP_PLAN}
    select p.seq as "afterSeq", p.head_seq as "headSeq", e.id, e."receivedAtMs"
      from (select coalesce(${afterSeq}::bigint,
                     (select floor_seq from rollup_head where workspace_id = ${workspaceId}), 0) as seq,
                   coalesce((select seq from chain_head where workspace_id = ${workspaceId}), 0) as head_seq) as p
      left join lateral (
        select id, (date_part('epoch', received_at) * 1000)::bigint as "receivedAtMs"
          from event
         where workspace_id = ${workspaceId} and seq = p.seq + 1) as e on true`.execute(db)
  return rows[0] ?? { afterSeq: 0, headSeq: 0, id: null, receivedAtMs: null }
}

export async function readReceipt(
  db: Queryable,
  workspaceId: WorkspaceId,
  seq: number,
): Promise<Receipt> {
  const { rows } = await sql<Receipt>`
    ${KEEP_PLAN}
    select id, (date_part('epoch', received_at) * 1000)::bigint as "receivedAtMs"
      from event
     where workspace_id = ${workspaceId} and seq = ${seq}`.execute(db)
  return rows[0] ?? { id: null, receivedAtMs: null }
}
