import { type RawBuilder, sql } from 'kysely'
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
import type { TextMatch } from './value-store.ts'

/**
 * The newest events of each field that has one of the values, each value by its own range of the index,
 * and those above `seenSeq`, whose values may not be listed yet. An event may be there several times.
 */
export async function listMatchingEvents(
  db: Queryable,
  query: PageQuery,
  { matches, seenSeq }: { matches: readonly TextMatch[]; seenSeq: number },
): Promise<SealedEvent[]> {
  const byField = Map.groupBy(matches, ({ field }) => field)
  const parts = [...byField].map(([field, found]) =>
    withValues(query, { field, values: found.map(({ value }) => value) }),
  )
  const { rows } = await sql<EventRow>`${sql.join(
    [unseen(query, seenSeq), ...parts].map((part) => sql`(${part})`),
    sql` union all `,
  )}`.execute(db)
  return rows.map(toEvent)
}

function withValues(
  { workspaceId, hot, filter, after, limit }: PageQuery,
  { field, values }: { field: SearchedField; values: readonly string[] },
): RawBuilder<unknown> {
  const conditions = [
    sql`workspace_id = ${workspaceId}`,
    sql`${SEARCHED_COLUMNS[field]} = wanted.value`,
    ...filterConditions({ ...filter, text: null }),
    ...(after ? [afterCondition(after)] : []),
    hotFromCondition(filter, hot.fromId),
  ]
  return sql`
    select ${EVENT_COLUMNS}
      from unnest(${values}::text[]) as wanted (value)
     cross join lateral (
       select * from event
        where ${sql.join(conditions, sql` and `)}
        order by ts desc, id desc
        limit ${limit}) as found
     order by ts desc, id desc
     limit ${limit}`
}

function unseen(
  { workspaceId, hot, filter, after, limit }: PageQuery,
  seenSeq: number,
): RawBuilder<unknown> {
  const conditions = [
    sql`true`,
    ...filterConditions(filter),
    ...(after ? [afterCondition(after)] : []),
  ]
  return sql`
    select ${EVENT_COLUMNS}
      from (select * from event
             where workspace_id = ${workspaceId} and seq > ${Math.max(seenSeq, hot.floorSeq)}
            offset 0) as unseen
     where ${sql.join(conditions, sql` and `)}
     order by ts desc, id desc
     limit ${limit}`
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
