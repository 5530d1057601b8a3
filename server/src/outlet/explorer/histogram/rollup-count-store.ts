import { type RawBuilder, sql } from 'kysely'
import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import {
  type FieldValue,
  orderExclusions,
  valuesByField,
} from '../../../ledger/filter/exclusion.ts'
import { filterConditions, hasOneOf, hasSomeOf } from '../../../ledger/event-store.ts'
import { KEEP_PLAN } from '../../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { type CountQuery, type EventCount, grouped } from './event-count-store.ts'
import { type SplitRange, splitRange, type TimeRange } from './rollup-ranges.ts'
import type { TextMatch } from '../filter-option/value-store.ts'

/** Besides the time, the roll-up stores only these fields of an event. */
export function isInRollup({ field }: { field: keyof EventFilter }): boolean {
  return field === 'category' || field === 'action'
}

/**
 * Counts with the roll-up. One statement, so one snapshot, adds up whole buckets of the roll-up, the events
 * that it hasn't counted yet (by seq), and the partial buckets at both ends of the range (event by event),
 * and subtracts the events that it still includes but that are no longer hot.
 *
 * `offset 0` forces reading range by range: a cached plan would read a whole category and discard most of it.
 *
 * The filter may only require categories and actions. It may exclude any values: events with an excluded
 * value that the buckets don't store are found by that value and subtracted. It may have a text, passed with
 * the values that contain it: events that contain it outside category and action are found and added.
 */
export async function countByRollup(
  db: Queryable,
  query: CountQuery,
  matches: readonly TextMatch[] | null = null,
): Promise<EventCount[]> {
  const { workspaceId, hot } = query
  const { cells, live } = splitRange(query.range, query.bars)
  const filter = { ...query.filter, fromMs: null, toMs: null }
  const excluded = filter.excluded ?? []
  const where = allOf(filterConditions(filter))
  const whereButText = allOf(filterConditions({ ...filter, text: null }))
  const cellFilter = {
    ...filter,
    text: null,
    excluded: orderExclusions(excluded.filter(isInRollup)),
  }
  const holdsInCell = matches ? hasSomeOf(matches.filter(isInRollup)) : sql`true`
  const inCell = allOf([...filterConditions(cellFilter), holdsInCell])
  const elsewhere = (matches ?? []).filter((match) => !isInRollup(match))
  const leftOut = excluded.filter((exclusion) => !isInRollup(exclusion))
  const seenSeq = sql`coalesce((select seen_seq from rollup_head where workspace_id = ${workspaceId}), 0)`
  const floorSeq = sql`coalesce((select floor_seq from rollup_head where workspace_id = ${workspaceId}), 0)`
  const whole = hullOf(cells)
  const inWhole = sql`ts >= ${new Date(whole.fromMs)} and ts < ${new Date(whole.toMs)}`
  const isSeen = sql`workspace_id = ${workspaceId} and id >= ${hot.fromId}::uuid and seq <= ${seenSeq}
                     and ${inWhole}`
  // No cached plan fits, because the number of gathered events depends on the values.
  const isGathering = matches !== null || leftOut.length > 0
  const parts = isGathering ? GATHERED_PARTS : COUNTED_PARTS
  const { rows } = await sql<EventCount>`
    ${isGathering ? sql`` : KEEP_PLAN}
    with tail as materialized (
      select ${parts} from event
       where workspace_id = ${workspaceId} and seq > greatest(${hot.floorSeq}::bigint, ${seenSeq})
    ), stale as materialized (
      select ${parts} from event
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
      ${gathered(elsewhere, sql`${isSeen} and ${whereButText} and not ${holdsInCell}`, 1)}
      ${gathered(leftOut, sql`${isSeen} and ${inCell}`, -1)}
    )
    ${grouped(query, sql`sum(events)::bigint`)}`.execute(db)
  return rows
}

const COUNTED_PARTS = sql`ts, category, action`
const GATHERED_PARTS = sql`
  ts, category, action, project_id, actor_id, actor_email, resource_type, resource_id`

/** Events that have one of the values and meet the condition, each once, to be added or subtracted. */
function gathered(
  values: readonly FieldValue[],
  condition: RawBuilder<unknown>,
  sign: 1 | -1,
): RawBuilder<unknown> {
  if (values.length === 0) return sql``
  const byField = [...valuesByField(values)].map(
    (entry) =>
      sql`select ts, id, category, action from event where ${condition} and ${hasOneOf(...entry)}`,
  )
  return sql`
      union all
      select ts, category, action, ${sql.lit(sign)} from (${sql.join(byField, sql` union `)}) as gathered`
}

function allOf(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return sql.join([sql`true`, ...conditions], sql` and `)
}

function timesOf(ranges: readonly TimeRange[], end: keyof TimeRange): Date[] {
  return ranges.map((range) => new Date(range[end]))
}

/** The smallest range that contains all cells. The buckets of a range are adjacent, so it has no gaps. */
function hullOf(cells: SplitRange['cells']): TimeRange {
  if (cells.length === 0) return { fromMs: 0, toMs: 0 }
  return {
    fromMs: Math.min(...cells.map(({ fromMs }) => fromMs)),
    toMs: Math.max(...cells.map(({ toMs }) => toMs)),
  }
}
