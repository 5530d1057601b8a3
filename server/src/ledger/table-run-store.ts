import { sql } from 'kysely'
import type { WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { SealedEvent } from './event.ts'
import { comparesMetadata, type EventFilter } from './filter/event-filter.ts'
import {
  EVENT_COLUMNS,
  type EventRow,
  filterConditions,
  PART_BYTES,
  toEvent,
} from './event-store.ts'
import { findComparableEnd } from './search/comparable-run-store.ts'

/**
 * Reads the matching events of a run that are in the table, the last one first, up to `limit` events or until
 * their parts reach `bytesMax`, and at least one. The search continues at `nextSeq`.
 */
export async function readRunBackward(
  db: Queryable,
  {
    workspaceId,
    fromSeq,
    toSeq,
    filter,
    limit,
    bytesMax,
  }: {
    workspaceId: WorkspaceId
    fromSeq: number
    toSeq: number
    filter: EventFilter
    limit: number
    bytesMax: number
  },
): Promise<{ events: SealedEvent[]; nextSeq: number }> {
  const run = { workspaceId, fromSeq, toSeq, order: 'desc' as const }
  const firstSeq = comparesMetadata(filter) ? await findComparableEnd(db, run) : fromSeq
  const { rows } = await sql<EventRow & { hasNext: boolean }>`
    select ${EVENT_COLUMNS}, has_next as "hasNext"
      from (select run.*,
                   row_number() over listed as place,
                   sum(${PART_BYTES}) over (listed rows unbounded preceding) - (${PART_BYTES}) as bytes_before,
                   lead(true) over listed is not null as has_next
              from (select * from event
                     where workspace_id = ${workspaceId} and seq >= ${firstSeq} and seq <= ${toSeq}
                    offset 0) as run
             where ${sql.join([sql`true`, ...filterConditions(filter)], sql` and `)}
            window listed as (order by seq desc)) as measured
     where place <= ${limit} and bytes_before < ${bytesMax}
     order by seq desc`.execute(db)
  const events = rows.map(toEvent)
  const last = rows.at(-1)
  return { events, nextSeq: last?.hasNext === true ? last.seq - 1 : firstSeq - 1 }
}
