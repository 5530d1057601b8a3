import { type RawBuilder, sql } from 'kysely'
import { SEARCHED_COLUMNS } from '../../ledger/event-store.ts'
import { foldCase } from '../../ledger/fold-case.ts'
import type { HotFloor } from '../../ledger/hot-floor.ts'
import type { ValueField } from '../../ledger/rollup-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { KEEP_PLAN } from '../../platform/kept-plan.ts'
import type { Queryable } from '../../platform/pg.ts'
import { holds } from './value-store.ts'

export type ValueCount = { value: string; events: number }

export type OptionQuery = {
  workspaceId: WorkspaceId
  hot: HotFloor
  field: ValueField
  /** In lower or upper case alike. */
  contains: string | null
  limit: number
}

/**
 * The most frequent values of a field among the hot events. They are looked for among those that are
 * marked as frequent, and only where these are too few, among all of them.
 */
export async function listValues(db: Queryable, query: OptionQuery): Promise<ValueCount[]> {
  return (await listMarkedValues(db, query)) ?? (await listAnyValues(db, query))
}

type MarkedCount = ValueCount & { frequentFrom: number | null }

/**
 * Null when a value that is not marked may belong there. All that changed since the list was made is
 * looked at; of the others, those that are not marked have fewer events than `frequent_from`, and
 * where that is two, they have one.
 */
async function listMarkedValues(db: Queryable, query: OptionQuery): Promise<ValueCount[] | null> {
  const { workspaceId, field, contains, limit } = query
  const where = contains === null ? sql`true` : holds(contains)
  const { rows } = await sql<MarkedCount>`
    ${KEEP_PLAN}
    with ${changeParts(query)}, bound as materialized (
      select f.frequent_from
        from event_field f
        join rollup_head r on r.workspace_id = f.workspace_id and r.seen_seq = f.frequent_seq
       where f.workspace_id = ${workspaceId} and f.field = ${field}
    ), candidate as (
      select value, events from event_value
       where workspace_id = ${workspaceId} and field = ${field} and is_frequent and ${where}
      union
      select v.value, v.events
        from change c join event_value v
          on v.workspace_id = ${workspaceId} and v.field = ${field} and v.value = c.value
      union
      select value, events from (
        select value, events from event_value
         where workspace_id = ${workspaceId} and field = ${field} and not is_frequent and ${where}
           and (select frequent_from from bound) = 2
         order by value
         limit ${limit} + (select count(*) from change)) as single
    )
    select *, (select frequent_from from bound) as "frequentFrom"
      from (${summed(sql`select value, events from candidate`, limit)}) as first`.execute(db)
  const last = rows.at(-1)
  if (!last || last.frequentFrom === null) return null
  const isCertain =
    last.frequentFrom <= 2 || (rows.length === limit && last.events >= last.frequentFrom)
  return isCertain ? rows.map(({ value, events }) => ({ value, events })) : null
}

async function listAnyValues(db: Queryable, query: OptionQuery): Promise<ValueCount[]> {
  const { workspaceId, field, contains, limit } = query
  const listed =
    contains === null
      ? sql`
        select value, events from event_value
         where workspace_id = ${workspaceId} and field = ${field}`
      : // What was typed is looked for in the index alone; the counts are read of what was found.
        sql`
        select v.value, v.events
          from (select value from event_value
                 where workspace_id = ${workspaceId} and field = ${field} and ${holds(contains)}
                offset 0) as found
          join event_value v
            on v.workspace_id = ${workspaceId} and v.field = ${field} and v.value = found.value`
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

/** What is listed with what changed. Not by a join: of either side there may be many. */
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
 * What the list has not seen yet, less what it still holds and is no longer hot. In one statement
 * with the list, so in one snapshot with it.
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
