import { sql } from 'kysely'
import type { Queryable } from '../../../platform/pg/database.ts'
import { NODE_PART_LENGTH } from '../../../platform/node/node-presence.ts'
import { UNCHANGED } from './delivery-queue-store.ts'

/**
 * Makes the deliveries that dead nodes have leased due now, and returns how many. The leases stay, so the
 * result of a node that was only paused still counts until another node claims the delivery.
 *
 * Leases end within `leaseMs`, so only deliveries that are due until then are read, not the whole queue.
 */
export async function takeOverLeases(
  db: Queryable,
  { nodeIds, now, leaseMs }: { nodeIds: readonly string[]; now: Date; leaseMs: number },
): Promise<number> {
  const holders = nodeIds.map((id) => id.slice(0, NODE_PART_LENGTH))
  const { rows } = await sql<{ count: number }>`
    with open as materialized (
      select workspace_id, id from webhook where has_open
    ), held as materialized (
      select d.*
        from open
       cross join lateral (
         select ${UNCHANGED}, attempt, lease
           from webhook_delivery
          where workspace_id = open.workspace_id and webhook_id = open.id
            and status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED')
            and due_at > ${now} and due_at <= ${new Date(now.getTime() + leaseMs)}
            and status = 'SENDING' and left(lease::text, ${sql.lit(NODE_PART_LENGTH)}) = any(${holders})
          order by due_at
            for update skip locked) as d
    ), taken as (
      insert into webhook_delivery as d (${UNCHANGED}, status, attempt, lease, due_at, updated_at)
      select ${UNCHANGED}, 'SENDING', attempt, lease, ${now}::timestamptz, ${now}::timestamptz
        from held
      on conflict (workspace_id, id) do update
         set due_at = excluded.due_at, updated_at = excluded.updated_at
      returning d.id
    )
    select count(*) as count from taken`.execute(db)
  return rows[0]?.count ?? 0
}
