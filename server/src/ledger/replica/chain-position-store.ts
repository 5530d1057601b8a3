import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { ChainPosition } from './chain-position.ts'

/** Where the chain ends on this server, or null if it is not there or empty. */
export async function findChainPosition(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<ChainPosition | null> {
  const { rows } = await sql<ChainPosition>`
    ${KEEP_PLAN}
    select seq, hash, pg_is_in_recovery() as "isStandby",
           coalesce((select max(last_seq) from segment where workspace_id = ${workspaceId}), 0)
             as "archivedSeq"
      from chain_head
     where workspace_id = ${workspaceId} and seq > 0`.execute(db)
  return rows[0] ?? null
}

/** Whether the table has this event of the chain. The hash covers all events before it. */
export async function hasEvent(
  db: Queryable,
  workspaceId: WorkspaceId,
  { seq, hash }: Pick<ChainPosition, 'seq' | 'hash'>,
): Promise<boolean> {
  const { rows } = await sql`
    ${KEEP_PLAN}
    select from event
     where workspace_id = ${workspaceId} and seq = ${seq} and hash = decode(${hash}, 'hex')`.execute(
    db,
  )
  return rows.length > 0
}
