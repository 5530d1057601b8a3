import { type RawBuilder, sql } from 'kysely'
import {
  type EventFilter,
  NO_FILTER,
  type SearchedField,
} from '../../../ledger/filter/event-filter.ts'
import type { PagePosition, PartialPage } from '../../../ledger/event-page.ts'
import {
  afterCondition,
  filterConditions,
  hotFromCondition,
  readPage,
  SEARCHED_COLUMNS,
} from '../../../ledger/event-store.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Hot } from '../searches.ts'
import type { TextMatch } from '../filter-option/value-store.ts'

export type PageQuery = {
  workspaceId: WorkspaceId
  hot: Hot
  hotSinceMs: number
  filter: EventFilter
  after: PagePosition | null
  limit: number
  bytesMax: number
  rowsMax: number
}

/**
 * Returns a page of the newest events that have one of the values in its field. Reads one index range per
 * value, and the events above `seenSeq`, whose values may not be listed yet. An event can match several
 * times, so the statement collects and deduplicates ids before it reads the page.
 */
export async function listMatchingEvents(
  db: Queryable,
  query: PageQuery,
  { matches, seenSeq }: { matches: readonly TextMatch[]; seenSeq: number },
): Promise<PartialPage> {
  const byField = Map.groupBy(matches, ({ field }) => field)
  const parts = [...byField].map(([field, found]) =>
    withValues(query, { field, values: found.map(({ value }) => value) }),
  )
  const found = sql.join(
    [unseen(query, seenSeq), ...parts].map((part) => sql`(${part})`),
    sql` union `,
  )
  const page = sql`
    select event.*
      from (select ts, id from (${found}) as found
             order by ts desc, id desc
             limit ${query.limit + 1}) as newest
     cross join lateral (
       select * from event
        where workspace_id = ${query.workspaceId} and id = newest.id
        limit 1) as event
     order by event.ts desc, event.id desc`
  return await readPage(db, page, query)
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
    select ts, id
      from unnest(${values}::text[]) as wanted (value)
     cross join lateral (
       select ts, id from event
        where ${sql.join(conditions, sql` and `)}
        order by ts desc, id desc
        limit ${limit + 1}) as found
     order by ts desc, id desc
     limit ${limit + 1}`
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
    select ts, id
      from (select * from event
             where workspace_id = ${workspaceId} and seq > ${Math.max(seenSeq, hot.floorSeq)}
            offset 0) as unseen
     where ${sql.join(conditions, sql` and `)}
     order by ts desc, id desc
     limit ${limit + 1}`
}

/** Returns a page of those of the newest `eventsMax` events that contain the text. */
export async function listNewestContaining(
  db: Queryable,
  { workspaceId, hot, filter, after, limit, bytesMax }: PageQuery,
  { eventsMax }: { eventsMax: number },
): Promise<PartialPage> {
  const { text, textIn } = filter
  const conditions = [
    sql`workspace_id = ${workspaceId}`,
    ...filterConditions({ ...filter, text: null }),
    ...(after ? [afterCondition(after)] : []),
    hotFromCondition(filter, hot.fromId),
  ]
  const page = sql`
    select newest.*
      from (select * from event
             where ${sql.join(conditions, sql` and `)}
             order by ts desc, id desc
             limit ${sql.lit(eventsMax)}) as newest
     where ${sql.join(filterConditions({ ...NO_FILTER, text, textIn }), sql` and `)}
     order by ts desc, id desc
     limit ${limit + 1}`
  return await readPage(db, page, { limit, bytesMax })
}
