import { sql } from 'kysely'
import { idTimeMs, type WorkspaceId } from '../platform/id.ts'
import { KEEP_PLAN } from '../platform/pg/kept-plan.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { EventId, SealedEvent } from './event.ts'
import { EVENT_COLUMNS, type EventRow, idFloor, toEvent } from './event-store.ts'

/**
 * Finds an event in the table by its id. No index starts with the id, but ids ascend along a chain, and the
 * id determines the partition. So one statement does a binary search over the sequence numbers that the
 * workspace has in that partition, whether or not the archiver deletes some of them meanwhile.
 */
export async function findStoredEvent(
  db: Queryable,
  { workspaceId, id }: { workspaceId: WorkspaceId; id: EventId },
): Promise<SealedEvent | null> {
  const { fromId, toId } = monthOf(id)
  const isInMonth = sql`
    workspace_id = ${workspaceId} and id >= ${fromId}::uuid and id < ${toId}::uuid`
  const { rows } = await sql<EventRow>`
    ${KEEP_PLAN}
    with recursive search (low, high) as (
      select (select seq from event where ${isInMonth} order by seq limit 1),
             (select seq from event where ${isInMonth} order by seq desc limit 1)
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
    select ${EVENT_COLUMNS}
      from (select * from event
             where ${isInMonth} and seq >= (select low from search where low >= high limit 1)
             order by seq
             limit 1) as found
     where id = ${id}::uuid`.execute(db)
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
