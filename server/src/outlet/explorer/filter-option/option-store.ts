import { type RawBuilder, sql } from 'kysely'
import { SEARCHED_COLUMNS } from '../../../ledger/event-store.ts'
import { foldCase } from '../../../platform/fold-case.ts'
import type { HotFloor } from '../../../ledger/hot/hot-floor.ts'
import type { ValueField } from '../../../ledger/rollup/rollup-store.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import { KEEP_PLAN } from '../../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { containsText, valuesContaining } from './value-store.ts'

export type ValueCount = { value: string; events: number }

type OptionQuery = {
  workspaceId: WorkspaceId
  hot: HotFloor
  field: ValueField
  /** Case-insensitive. */
  contains: string | null
  limit: number
}

/** Up to this many, looking up the count of each value is faster than scanning the whole list. */
const FOUND_MAX = 2_000

/**
 * The most frequent values of a field among the hot events. Searches the values that contain the typed text
 * if they are few, then those marked as frequent, and otherwise all values.
 */
export async function listValues(db: Queryable, query: OptionQuery): Promise<ValueCount[]> {
  const { contains } = query
  const found = contains === null ? null : await listFoundValues(db, { ...query, contains })
  return found ?? (await listMarkedValues(db, query)) ?? (await listAnyValues(db, query))
}

/** Returns null if too many values contain the typed text. */
async function listFoundValues(
  db: Queryable,
  query: OptionQuery & { contains: string },
): Promise<ValueCount[] | null> {
  const { workspaceId, field, contains, limit } = query
  const holding = valuesContaining({
    workspaceId,
    fields: [field],
    text: contains,
    limit: FOUND_MAX + 1,
  })
  const listed = lookedUp(query, sql`(select distinct value from found)`)
  const { rows } = await sql<(ValueCount | { value: null }) & { isCut: boolean }>`
    ${KEEP_PLAN}
    with ${changeParts(query)}, found as materialized (${holding})
    select f."isCut", first.*
      from (select count(*) > ${sql.lit(FOUND_MAX)} as "isCut" from found) as f
      left join (${summed(listed, limit)}) as first on true
     order by first.events desc, first.value`.execute(db)
  if (rows[0]?.isCut) return null
  return rows.flatMap((row) =>
    row.value === null ? [] : [{ value: row.value, events: row.events }],
  )
}

/**
 * Returns null if a value that wasn't checked might belong in the result. Checks all values that changed
 * since the list was built. Unchanged values without a mark have fewer events than `frequent_from`. If few
 * are marked, many values have exactly one event fewer, so the first of these by value are checked too.
 */
async function listMarkedValues(db: Queryable, query: OptionQuery): Promise<ValueCount[] | null> {
  const { workspaceId, field, contains, limit } = query
  const isMatch = sql`workspace_id = ${workspaceId} and field = ${field}
    and ${contains === null ? sql`true` : containsText(contains)}`
  const { rows } = await sql<ValueCount & { certainFrom: number | null }>`
    ${KEEP_PLAN}
    with ${changeParts(query)}, marked as materialized (
      select value, events from event_value where ${isMatch} and is_frequent
    ), bound as materialized (
      select f.frequent_from, (select count(*) from marked) < ${limit} as is_low
        from event_field f
       where f.workspace_id = ${workspaceId} and f.field = ${field}
    ), equal as materialized (
      select value, events from event_value
       where ${isMatch} and not is_frequent and (select is_low from bound)
         and events = (select frequent_from - 1 from bound)
       order by value
       limit ${limit} + (select count(*) from change)
    ), candidate as (
      select value, events from marked
      union select value, events from equal
      union ${lookedUp(query, sql`change`)}
    )
    select *, (select frequent_from - is_low::int from bound) as "certainFrom"
      from (${summed(sql`select value, events from candidate`, limit)}) as first`.execute(db)
  const last = rows.at(-1)
  if (!last || last.certainFrom === null) return null
  const { certainFrom } = last
  const isCertain = certainFrom <= 1 || (rows.length === limit && last.events >= certainFrom)
  return isCertain ? rows.map(({ value, events }) => ({ value, events })) : null
}

async function listAnyValues(db: Queryable, query: OptionQuery): Promise<ValueCount[]> {
  const { workspaceId, field, contains, limit } = query
  const listed = sql`
    select value, events from event_value
     where workspace_id = ${workspaceId} and field = ${field}
       and ${contains === null ? sql`true` : containsText(contains)}`
  const { rows } = await sql<ValueCount>`
    ${KEEP_PLAN}
    with ${changeParts(query)}
    ${summed(listed, limit)}`.execute(db)
  return rows
}

/** The counts of these values of a field among the hot events. */
export async function countValues(
  db: Queryable,
  { values, ...query }: Omit<OptionQuery, 'contains' | 'limit'> & { values: readonly string[] },
): Promise<ValueCount[]> {
  const { workspaceId, field } = query
  const isOne = sql`value = any (${values}::text[])`
  const { rows } = await sql<ValueCount>`
    ${KEEP_PLAN}
    with ${changeParts({ ...query, contains: null })}
    select value, sum(events)::bigint as events
      from (select value, events from event_value
             where workspace_id = ${workspaceId} and field = ${field} and ${isOne}
            union all select value, events from change where ${isOne}) as c
     group by value`.execute(db)
  return rows
}

/**
 * Looks up the counts of these values one by one. For a join, a plan cached while the list was empty could
 * swap the sides and compare every listed value with every one of these.
 */
function lookedUp(
  { workspaceId, field }: OptionQuery,
  values: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`
    select v.value, v.events
      from ${values} as wanted
     cross join lateral (
       select value, events from event_value
        where workspace_id = ${workspaceId} and field = ${field} and value = wanted.value
       offset 0) as v`
}

/** Adds the changes to the listed counts. Uses a union, because in a join both sides could be large. */
function summed(listed: RawBuilder<unknown>, limit: number): RawBuilder<unknown> {
  return sql`
    select value, sum(events)::bigint as events
      from (${listed} union all select value, events from change) as c
     group by value
    having sum(events) > 0
     order by 2 desc, 1
     limit ${limit}`
}

/**
 * The events that the list doesn't include yet, minus those it still includes that are no longer hot. Part
 * of the same statement as the list, so both see the same snapshot.
 */
function changeParts({
  workspaceId,
  hot,
  field,
  contains,
}: Omit<OptionQuery, 'limit'>): RawBuilder<unknown> {
  const column = columnOf(field)
  const seenSeq = sql`coalesce((select seen_seq from rollup_head where workspace_id = ${workspaceId}), 0)`
  const floorSeq = sql`coalesce((select floor_seq from rollup_head where workspace_id = ${workspaceId}), 0)`
  const where =
    contains === null
      ? sql`value is not null`
      : sql`position(${foldCase(contains)} in lower(value)) > 0`
  return sql`
    tail as materialized (
      select ${column} as value from event
       where workspace_id = ${workspaceId} and seq > greatest(${hot.floorSeq}::bigint, ${seenSeq})
    ), stale as materialized (
      select ${column} as value from event
       where workspace_id = ${workspaceId}
         and seq > ${floorSeq} and seq <= least(${hot.floorSeq}::bigint, ${seenSeq})
    ), change as materialized (
      select value, sum(events)::bigint as events
        from (select value, 1 as events from tail where ${where}
              union all select value, -1 from stale where ${where}) as c
       group by value
    )`
}

function columnOf(field: ValueField): RawBuilder<unknown> {
  return field === 'projectId' ? sql`project_id::text collate "C"` : SEARCHED_COLUMNS[field]
}
