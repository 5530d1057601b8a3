import { sql } from 'kysely'
import type { Queryable } from '../pg/database.ts'

export type SeenNode = {
  id: string
  role: string
  /** How long ago it last renewed its row, by the database's clock. */
  silentMs: number
}

/**
 * Renews the row of a node and returns the others. Deletes rows that were not renewed for `forgetMs`. The
 * commit waits neither for the disk nor for a standby, so that a node doesn't look dead while commits hang.
 */
export async function renewNode(
  db: Queryable,
  { id, role, forgetMs }: { id: string; role: string; forgetMs: number },
): Promise<SeenNode[]> {
  const { rows } = await sql<SeenNode>`
    with quick as materialized (
      select set_config('synchronous_commit', 'off', true)
    ), renewed as (
      insert into node (id, role, seen_at)
      select ${id}, ${role}, clock_timestamp() from quick
      on conflict (id) do update set seen_at = excluded.seen_at
    ), forgotten as (
      delete from node
       where id <> ${id} and seen_at < clock_timestamp() - ${forgetMs} * interval '1 millisecond'
    )
    select id, role,
           (extract(epoch from clock_timestamp() - seen_at) * 1000)::float8 as "silentMs"
      from node
     where id <> ${id}`.execute(db)
  return rows
}

export async function deleteNode(db: Queryable, id: string): Promise<void> {
  await sql`delete from node where id = ${id}`.execute(db)
}
