import assert from 'node:assert/strict'
import { type RawBuilder, sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { KEEP_PLAN } from '../../../platform/pg/kept-plan.ts'

/** How far a watch has seen the transactions of a server. */
export type WatchPosition = { group: number; snapshot: string; server: string }

export type Watched = {
  position: WatchPosition
  /** Workspaces with an enabled webhook that hasn't seen the last event. */
  behindIds: WorkspaceId[]
  /** Workspaces with a webhook that has open deliveries. */
  openIds: WorkspaceId[]
}

/**
 * Finds the workspaces whose webhooks can have work, up to `limit` of each kind. `known` are those that were
 * behind before, and others that the caller wants to check.
 *
 * A workspace falls behind when its head moves or a webhook is enabled. Both store the group of their
 * transaction, which the index finds. A transaction that the last snapshot didn't contain isn't older than the
 * oldest one that was running then, so the position is the group of that one. Without a position, all workspaces
 * are checked. Groups above the current one were stored by another server, before a restore.
 */
export async function findWatched(
  db: Queryable,
  {
    since,
    known,
    limit,
  }: { since: WatchPosition | null; known: readonly WorkspaceId[]; limit: number },
): Promise<Watched> {
  const { rows } = await sql<{
    group: number
    snapshot: string
    server: string
    behindIds: string[]
    openIds: string[]
  }>`
    ${KEEP_PLAN}
    with here as materialized (
      select pg_snapshot_xmin(snapshot)::text::bigint >> 4 as oldest_group,
             pg_snapshot_xmax(snapshot)::text::bigint >> 4 as newest_group,
             snapshot::text as snapshot
        from pg_current_snapshot() as snapshot
    ), changed as materialized (
      ${since === null ? ALL_ENABLED : changedSince(since, known)}
    ), behind as materialized (
      select c.workspace_id
        from changed c
       cross join lateral (
         select seq from chain_head where workspace_id = c.workspace_id limit 1) as h
       cross join lateral (
         select from webhook w
          where w.workspace_id = c.workspace_id and w.status = 'ENABLED' and w.seen_seq < h.seq
          limit 1) as w
       limit ${sql.lit(limit)}
    )
    select oldest_group as "group", snapshot, pg_postmaster_start_time()::text as server,
           array(select workspace_id from behind)::text[] as "behindIds",
           array(select workspace_id from webhook
                  where has_open order by created_at limit ${sql.lit(limit)})::text[] as "openIds"
      from here`.execute(db)
  const [row] = rows
  assert(row, 'it has one row')
  return {
    position: { group: row.group, snapshot: row.snapshot, server: row.server },
    behindIds: row.behindIds.map((id) => assertId<'workspace'>(id)),
    openIds: row.openIds.map((id) => assertId<'workspace'>(id)),
  }
}

const ALL_ENABLED = sql`select distinct workspace_id from webhook where status = 'ENABLED'`

function changedSince(
  { group, snapshot }: WatchPosition,
  known: readonly WorkspaceId[],
): RawBuilder<unknown> {
  // With the same snapshot, nothing can have changed.
  const range = sql`between ${group}::bigint and (select newest_group from here)
         and (select snapshot from here) <> ${snapshot}::text`
  return sql`
      select workspace_id from chain_head where moved_group ${range}
      union
      select workspace_id from webhook where enabled_group ${range}
      union
      select unnest(${known}::uuid[])`
}
