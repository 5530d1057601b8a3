import { type RawBuilder, sql } from 'kysely'
import {
  type EventFilter,
  NO_FILTER,
  SEARCHED_FIELDS,
  type SearchedField,
} from '../../ledger/event-filter.ts'
import { filterConditions, hotFromCondition, SEARCHED_COLUMNS } from '../../ledger/event-store.ts'
import type { HotFloor } from '../../ledger/hot-floor.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { KEEP_PLAN } from '../../platform/kept-plan.ts'
import type { Queryable } from '../../platform/pg.ts'
import { originOf } from './histogram-step.ts'
import { type SplitRange, splitRange, type TimeRange } from './rollup-ranges.ts'
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

/**
 * Counts by the roll-up, for a filter of category, action and text at most. In one statement, so in
 * one snapshot: whole buckets from the roll-up, what it has not seen yet by its number, the ragged ends
 * of the range event by event, and less what the roll-up still holds and is no longer hot.
 *
 * `offset 0` makes it read range by range: a kept plan would read all of a category and throw away.
 *
 * A text comes with the values that hold it. Those of category and action are in the buckets; the
 * events that hold it elsewhere only are gathered by their values.
 */
export async function countByRollup(
  db: Queryable,
  query: CountQuery,
  matches: readonly TextMatch[] | null = null,
): Promise<EventCount[]> {
  const { workspaceId, hot } = query
  const { cells, live } = splitRange(query.range, query.stepS)
  const filter = { ...query.filter, fromMs: null, toMs: null }
  const where = sql.join([sql`true`, ...filterConditions(filter)], sql` and `)
  const asked = sql.join([sql`true`, ...filterConditions({ ...filter, text: null })], sql` and `)
  const holdsInCell = matches ? isOneOf(matches, ['category', 'action']) : sql`true`
  const inCell = sql`${asked} and ${holdsInCell}`
  const columns = matches ? SEARCHED_PARTS : COUNTED_PARTS
  const seenSeq = sql`coalesce((select seen_seq from rollup_head where workspace_id = ${workspaceId}), 0)`
  const floorSeq = sql`coalesce((select floor_seq from rollup_head where workspace_id = ${workspaceId}), 0)`
  const whole = hullOf(cells)
  const inWhole = sql`ts >= ${new Date(whole.fromMs)} and ts < ${new Date(whole.toMs)}`
  const elsewhere = holdingElsewhere(
    matches ?? [],
    sql`workspace_id = ${workspaceId} and id >= ${hot.fromId}::uuid and seq <= ${seenSeq}
        and ${inWhole} and ${asked} and not ${holdsInCell}`,
  )
  // How many events hold a text elsewhere no plan for all texts can know.
  const { rows } = await sql<EventCount>`
    ${matches ? sql`` : KEEP_PLAN}
    with tail as materialized (
      select ${columns} from event
       where workspace_id = ${workspaceId} and seq > greatest(${hot.floorSeq}::bigint, ${seenSeq})
    ), stale as materialized (
      select ${columns} from event
       where workspace_id = ${workspaceId}
         and seq > ${floorSeq} and seq <= least(${hot.floorSeq}::bigint, ${seenSeq})
    ), counted as (
      select c.bucket as ts, c.category, c.action, c.events
        from unnest(${cells.map(({ grainS }) => grainS)}::int[], ${timesOf(cells, 'fromMs')}::timestamptz[],
                    ${timesOf(cells, 'toMs')}::timestamptz[]) as r (grain_s, begins, ends)
       cross join lateral (
         select bucket, category, action, events from event_rollup
          where workspace_id = ${workspaceId} and grain_s = r.grain_s
            and bucket >= r.begins and bucket < r.ends and ${inCell} offset 0) as c
      union all
      select e.ts, e.category, e.action, 1
        from unnest(${timesOf(live, 'fromMs')}::timestamptz[], ${timesOf(live, 'toMs')}::timestamptz[])
          as r (begins, ends)
       cross join lateral (
         select ts, category, action from event
          where workspace_id = ${workspaceId} and ts >= r.begins and ts < r.ends
            and id >= ${hot.fromId}::uuid and ${where} offset 0) as e
      union all
      select ts, category, action, 1 from tail where ${inWhole} and ${where}
      union all
      select ts, category, action, -1 from stale where ${inWhole} and ${inCell}
      ${elsewhere}
    )
    ${grouped(query, sql`sum(events)::bigint`)}`.execute(db)
  return rows
}

const COUNTED_PARTS = sql`ts, category, action`
const SEARCHED_PARTS = sql`ts, category, action, actor_id, actor_email, resource_type, resource_id`

const FACETS = ['actorId', 'actorEmail', 'resourceType', 'resourceId'] as const

/** What has one of the values in another place than the roll-up knows, to be added; each event once. */
function holdingElsewhere(
  matches: readonly TextMatch[],
  isMeant: RawBuilder<unknown>,
): RawBuilder<unknown> {
  const fields = FACETS.filter((field) => matches.some((match) => match.field === field))
  if (fields.length === 0) return sql``
  const parts = fields.map(
    (field) =>
      sql`select ts, id, category, action from event where ${isMeant} and ${isOneOf(matches, [field])}`,
  )
  return sql`
      union all
      select ts, category, action, 1 from (${sql.join(parts, sql` union `)}) as elsewhere`
}

/** Whether an event has one of the values, as far as these fields go. */
function isOneOf(
  matches: readonly TextMatch[],
  fields: readonly SearchedField[],
): RawBuilder<unknown> {
  const conditions = fields.map((field) => {
    const values = matches.filter((match) => match.field === field).map(({ value }) => value)
    return sql`${SEARCHED_COLUMNS[field]} = any (${values}::text[])`
  })
  return sql`(${sql.join(conditions, sql` or `)})`
}

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
  const isKnown = isOneOf(matches, SEARCHED_FIELDS)
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
  const byField = Map.groupBy(matches, ({ field }) => field)
  const arms = [...byField].map(([field, found]) => {
    const values = found.map(({ value }) => value)
    const isOne = sql`${SEARCHED_COLUMNS[field]} = any (${values}::text[])`
    return sql`select ${columns} from event where ${allOf(query, filter, [isOne])}`
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

function grouped(
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

function timesOf(ranges: readonly TimeRange[], end: keyof TimeRange): Date[] {
  return ranges.map((range) => new Date(range[end]))
}

/** The buckets of a range are next to each other. */
function hullOf(cells: SplitRange['cells']): TimeRange {
  if (cells.length === 0) return { fromMs: 0, toMs: 0 }
  return {
    fromMs: Math.min(...cells.map(({ fromMs }) => fromMs)),
    toMs: Math.max(...cells.map(({ toMs }) => toMs)),
  }
}
