import { sql } from 'kysely'
import { idTimeMs, type WorkspaceId } from '../platform/id.ts'
import { KEEP_PLAN } from '../platform/pg/kept-plan.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { EventId, SealedEvent } from './event.ts'
import { EVENT_COLUMNS, type EventRow, idFloor, toEvent } from './event-store.ts'

/**
 * Finds an event of these workspaces in the table by its id. No index starts with the id, but ids ascend
 * along a chain, and the id determines the partition. So one statement does a binary search over the sequence
 * numbers that each workspace has in that partition, whether or not the archiver deletes some of them
 * meanwhile. It skips workspaces whose ids in the partition don't include this one, and stops at the first
 * that has the event.
 */
export async function findStoredEvent(
  db: Queryable,
  { workspaceIds, id }: { workspaceIds: readonly WorkspaceId[]; id: EventId },
): Promise<SealedEvent | null> {
  const { fromId, toId } = monthOf(id)
  // Planning took longer than the search. The planner can't see values in subselects, so PostgreSQL keeps a
  // generic plan.
  const isInMonth = sql`
    workspace_id = w.workspace_id and id >= (select ${fromId}::uuid) and id < (select ${toId}::uuid)`
  const { rows } = await sql<EventRow>`
    ${KEEP_PLAN}
    select ${EVENT_COLUMNS}
      from (select found.*
              from unnest((select ${workspaceIds}::uuid[])) as w (workspace_id)
             cross join lateral (
               select seq from (select seq, id from event where ${isInMonth} order by seq limit 1) as e
                where e.id <= ${id}::uuid) as first
             cross join lateral (
               select seq from (select seq, id from event where ${isInMonth} order by seq desc limit 1) as e
                where e.id >= ${id}::uuid) as last
             cross join lateral (
               with recursive search (low, high) as (
                 select first.seq, last.seq
                 union all
                 select case when reached then low else middle + 1 end,
                        case when reached then middle else high end
                   from (select low, high, middle,
                                (select id >= ${id}::uuid from event
                                  where ${isInMonth} and seq >= middle
                                  order by seq
                                  limit 1) is true as reached
                           from (select low, high, (low + high) / 2 as middle
                                   from search
                                  where low < high) as halved) as probed
               )
               select * from event
                where ${isInMonth} and seq >= (select low from search where low >= high limit 1)
                order by seq
                limit 1) as found
             where found.id = ${id}::uuid
             limit 1) as event`.execute(db)
  const [row] = rows
  return row ? toEvent(row) : null
}

/** The largest time that an id can have. */
const ID_MS_MAX = 2 ** 48 - 1

/** The ids of the month, which are those of the partition. */
function monthOf(id: EventId): { fromId: string; toId: string } {
  const at = new Date(idTimeMs(id))
  const startMs = Date.UTC(at.getUTCFullYear(), at.getUTCMonth())
  const endMs = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
  return { fromId: idFloor(startMs), toId: idFloor(Math.min(endMs, ID_MS_MAX)) }
}
