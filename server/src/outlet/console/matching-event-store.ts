import { sql } from 'kysely'
import type { SealedEvent } from '../../ledger/event.ts'
import { NO_FILTER, type SearchedField } from '../../ledger/event-filter.ts'
import {
  afterCondition,
  EVENT_COLUMNS,
  type EventRow,
  filterConditions,
  hotFromCondition,
  SEARCHED_COLUMNS,
  toEvent,
} from '../../ledger/event-store.ts'
import type { Queryable } from '../../platform/pg.ts'
import type { PageQuery } from './explore-events.ts'

/** The newest events that have one of the values, each value by its own range of the index. */
export async function listValueEvents(
  db: Queryable,
  { workspaceId, hot, filter, after, limit }: PageQuery,
  { field, values }: { field: SearchedField; values: readonly string[] },
): Promise<SealedEvent[]> {
  const conditions = [
    sql`workspace_id = ${workspaceId}`,
    sql`${SEARCHED_COLUMNS[field]} = wanted.value`,
    ...filterConditions({ ...filter, text: null }),
    ...(after ? [afterCondition(after)] : []),
    hotFromCondition(filter, hot.fromId),
  ]
  const { rows } = await sql<EventRow>`
    select ${EVENT_COLUMNS}
      from unnest(${values}::text[]) as wanted (value)
     cross join lateral (
       select * from event
        where ${sql.join(conditions, sql` and `)}
        order by ts desc, id desc
        limit ${limit}) as found
     order by ts desc, id desc
     limit ${limit}`.execute(db)
  return rows.map(toEvent)
}

/** What holds the text among the newest events, of which so many are looked at. */
export async function listNewestHolding(
  db: Queryable,
  { workspaceId, hot, filter, after, limit }: PageQuery,
  { eventsMax }: { eventsMax: number },
): Promise<SealedEvent[]> {
  const { text } = filter
  const conditions = [
    sql`workspace_id = ${workspaceId}`,
    ...filterConditions({ ...filter, text: null }),
    ...(after ? [afterCondition(after)] : []),
    hotFromCondition(filter, hot.fromId),
  ]
  const { rows } = await sql<EventRow>`
    select ${EVENT_COLUMNS}
      from (select * from event
             where ${sql.join(conditions, sql` and `)}
             order by ts desc, id desc
             limit ${sql.lit(eventsMax)}) as newest
     where ${sql.join(filterConditions({ ...NO_FILTER, text }), sql` and `)}
     order by ts desc, id desc
     limit ${limit}`.execute(db)
  return rows.map(toEvent)
}

/** The newest matching events above `seenSeq`, whose values may not be listed yet. */
export async function listUnseenEvents(
  db: Queryable,
  { workspaceId, hot, filter, after, limit }: PageQuery,
  seenSeq: number,
): Promise<SealedEvent[]> {
  const conditions = [
    sql`true`,
    ...filterConditions(filter),
    ...(after ? [afterCondition(after)] : []),
  ]
  const { rows } = await sql<EventRow>`
    select ${EVENT_COLUMNS}
      from (select * from event
             where workspace_id = ${workspaceId} and seq > ${Math.max(seenSeq, hot.floorSeq)}
            offset 0) as unseen
     where ${sql.join(conditions, sql` and `)}
     order by ts desc, id desc
     limit ${limit}`.execute(db)
  return rows.map(toEvent)
}
