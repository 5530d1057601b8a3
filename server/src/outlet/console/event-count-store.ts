import { type RawBuilder, sql } from 'kysely'
import { type EventFilter, NO_FILTER } from '../../ledger/event-filter.ts'
import {
  filterConditions,
  hasOneOf,
  hasSomeOf,
  hotFromCondition,
} from '../../ledger/event-store.ts'
import { valuesByField } from '../../ledger/exclusion.ts'
import type { HotFloor } from '../../ledger/hot-floor.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import { originOf } from './histogram-step.ts'
import type { TimeRange } from './rollup-ranges.ts'
import type { TextMatch } from './value-store.ts'

/** What the counted events are put together by. */
export const COUNT_BY = ['none', 'category', 'action'] as const
export type CountBy = (typeof COUNT_BY)[number]

export type CountQuery = {
  workspaceId: WorkspaceId
  hot: HotFloor & { fromId: string }
  range: TimeRange
  filter: EventFilter
  by: CountBy
  /** Null: all of the range in one. */
  stepS: number | null
  /** The values that are told apart; null: all of them. */
  values: readonly string[] | null
  /** A value must hold it, in lower case A to Z. */
  contains?: string
  limit: number
}

/** A count: of a bar, by its start, and of a value; null for what is not told apart. */
export type EventCount = { barMs: number | null; value: string | null; events: number }

/** The values that hold the text of a filter, of the events up to `seenSeq`. */
export type KnownMatches = { matches: readonly TextMatch[]; seenSeq: number }

/**
 * Counts event by event, by the index that fits the filter. To compare with the values that hold a text
 * takes a third of the time of looking for the text in each event.
 */
export async function countByIndex(
  db: Queryable,
  query: CountQuery,
  known: KnownMatches | null = null,
): Promise<EventCount[]> {
  const isMeant = known
    ? allOf(query, { ...query.filter, text: null }, [knownCondition(query.filter, known)])
    : allOf(query, query.filter, [])
  const { rows } = await sql<EventCount>`
    with counted as (select ts, category, action from event where ${isMeant})
    ${grouped(query, sql`count(*)`)}`.execute(db)
  return rows
}

function knownCondition(
  { text }: EventFilter,
  { matches, seenSeq }: KnownMatches,
): RawBuilder<unknown> {
  const isKnown = hasSomeOf(matches)
  const holds = sql.join(filterConditions({ ...NO_FILTER, text }), sql` and `)
  return sql`(case when seq <= ${seenSeq} then ${isKnown} else ${holds} end)`
}

/**
 * Counts what holds a text by the values that hold it, and looks at what is above `seenSeq` event by
 * event. An event that holds it in two places is one event: the places are told apart by (ts, id).
 */
export async function countByMatches(
  db: Queryable,
  query: CountQuery,
  { matches, seenSeq }: KnownMatches,
): Promise<EventCount[]> {
  const filter = { ...query.filter, text: null }
  const columns = query.by === 'none' ? sql`ts, id` : sql`ts, id, category, action`
  const arms = [...valuesByField(matches)].map((entry) => {
    const isMeant = allOf(query, filter, [hasOneOf(...entry)])
    return sql`select ${columns} from event where ${isMeant}`
  })
  const isUnseen = sql`seq > ${Math.max(seenSeq, query.hot.floorSeq)}`
  const tail = sql`
    select ${columns} from (
      select ts, id, project_id, trace_id, category, action, actor_id, actor_email, resource_type, resource_id
        from event where workspace_id = ${query.workspaceId} and ${isUnseen} offset 0) as unseen
     where ${sql.join([sql`ts >= ${new Date(query.range.fromMs)}`, sql`ts < ${new Date(query.range.toMs)}`, ...filterConditions({ ...query.filter, fromMs: null, toMs: null })], sql` and `)}`
  const { rows } = await sql<EventCount>`
    with counted as (${sql.join([...arms, tail], sql` union `)})
    ${grouped(query, sql`count(*)`)}`.execute(db)
  return rows
}

/** The counts of `counted`, which has `ts`, `category` and `action`. */
export function grouped(
  { by, stepS, values, contains, limit }: CountQuery,
  events: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const column = by === 'none' ? sql`null::text` : sql.ref(by)
  const value =
    by === 'none' || values === null
      ? column
      : sql`case when ${column} = any (${values}::text[]) then ${column} end`
  const bar =
    stepS === null
      ? sql`null::bigint`
      : sql`(date_part('epoch', date_bin(${stepS} * interval '1 second', ts, ${new Date(originOf(stepS))}::timestamptz)) * 1000)::bigint`
  const holds =
    contains === undefined ? sql`true` : sql`position(${contains} in lower(${column})) > 0`
  return sql`
    select ${bar} as "barMs", ${value} as value, ${events} as events
      from counted
     where ${holds}
     group by 1, 2
    having ${events} > 0
     order by 3 desc, 2
     limit ${limit}`
}

function allOf(
  { workspaceId, hot, range }: CountQuery,
  filter: EventFilter,
  more: readonly RawBuilder<unknown>[],
): RawBuilder<unknown> {
  const inRange = { ...filter, ...range }
  return sql.join(
    [
      sql`workspace_id = ${workspaceId}`,
      ...filterConditions(inRange),
      hotFromCondition(inRange, hot.fromId),
      ...more,
    ],
    sql` and `,
  )
}
