import { type RawBuilder, sql } from 'kysely'
import { SEARCHED_FIELDS, type SearchedField } from '../../ledger/event-filter.ts'
import { SEARCHED_COLUMNS } from '../../ledger/event-store.ts'
import { foldCase } from '../../ledger/fold-case.ts'
import type { HotFloor } from '../../ledger/hot-floor.ts'
import type { ValueField } from '../../ledger/rollup-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { KEEP_PLAN } from '../../platform/kept-plan.ts'
import type { Queryable } from '../../platform/pg.ts'

/** A value that holds a text, and how many events have it. */
export type TextMatch = { field: SearchedField; value: string; events: number }

export type TextMatches = {
  matches: TextMatch[]
  /** Events above it may have values that are not listed yet. */
  seenSeq: number
  /** False when some field has too many values to list, or more match than were asked for. */
  isComplete: boolean
}

type MatchRow = {
  seenSeq: number
  isComplete: boolean
  field: SearchedField | null
  value: string
  events: number
}

/**
 * The values that hold a text. In one statement: what is not listed yet is above `seenSeq`. The values
 * are looked through in the index alone; the counts are read of those that were found.
 */
export async function findTextMatches(
  db: Queryable,
  { workspaceId, text, limit }: { workspaceId: WorkspaceId; text: string; limit: number },
): Promise<TextMatches> {
  const { rows } = await sql<MatchRow>`
    ${KEEP_PLAN}
    select h.seen_seq as "seenSeq", h.is_complete as "isComplete", m.field, m.value, m.events
      from (select coalesce(max(r.seen_seq), 0) as seen_seq,
                   not exists (
                     select from event_field f
                      where f.workspace_id = ${workspaceId} and f.field = any (${SEARCHED_FIELDS}::text[])
                        and f.dropped_seq > coalesce(max(r.floor_seq), 0)) as is_complete
              from rollup_head r where r.workspace_id = ${workspaceId}) as h
      left join (
        select v.field, v.value, v.events
          from (select field, value from event_value
                 where workspace_id = ${workspaceId} and field = any (${SEARCHED_FIELDS}::text[])
                   and position(${foldCase(text)} in lower(value)) > 0
                 limit ${limit + 1}) as found
          join event_value v
            on v.workspace_id = ${workspaceId} and v.field = found.field and v.value = found.value
      ) as m on true`.execute(db)
  const matches = rows.flatMap(({ field, value, events }) =>
    field === null ? [] : [{ field, value, events }],
  )
  return {
    matches,
    seenSeq: rows[0]?.seenSeq ?? 0,
    isComplete: rows[0]?.isComplete === true && matches.length <= limit,
  }
}

export type ValueCount = { value: string; events: number }

/**
 * The most frequent values of a field among the hot events, or the counts of the given ones. The list,
 * with what it has not seen yet, and less what it still holds and is no longer hot.
 */
export async function listValues(
  db: Queryable,
  {
    workspaceId,
    hot,
    field,
    contains,
    values,
    limit,
  }: {
    workspaceId: WorkspaceId
    hot: HotFloor
    field: ValueField
    contains: string | null
    values: readonly string[] | null
    limit: number
  },
): Promise<ValueCount[]> {
  const column = columnOf(field)
  const where = valueCondition(sql`value`, { contains, values })
  const ofListed = valueCondition(sql`v.value`, { contains, values })
  const seenSeq = sql`coalesce((select seen_seq from rollup_head where workspace_id = ${workspaceId}), 0)`
  const floorSeq = sql`coalesce((select floor_seq from rollup_head where workspace_id = ${workspaceId}), 0)`
  const { rows } = await sql<ValueCount>`
    ${KEEP_PLAN}
    with tail as materialized (
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
    )
    select v.value, v.events + coalesce(c.events, 0) as events
      from event_value v left join change c on c.value = v.value
     where v.workspace_id = ${workspaceId} and v.field = ${field} and ${ofListed}
       and v.events + coalesce(c.events, 0) > 0
    union all
    select c.value, c.events
      from change c
     where c.events > 0 and not exists (
       select from event_value v
        where v.workspace_id = ${workspaceId} and v.field = ${field} and v.value = c.value)
     order by events desc, value
     limit ${limit}`.execute(db)
  return rows
}

function valueCondition(
  value: RawBuilder<unknown>,
  { contains, values }: { contains: string | null; values: readonly string[] | null },
): RawBuilder<unknown> {
  const conditions = [
    sql`${value} is not null`,
    ...(contains === null ? [] : [sql`position(${foldCase(contains)} in lower(${value})) > 0`]),
    ...(values === null ? [] : [sql`${value} = any (${values}::text[])`]),
  ]
  return sql.join(conditions, sql` and `)
}

/** Whether every value of a field is listed. */
export async function hasEveryValue(
  db: Queryable,
  { workspaceId, field }: { workspaceId: WorkspaceId; field: ValueField },
): Promise<boolean> {
  const { rows } = await sql`
    ${KEEP_PLAN}
    select 1
      from event_field f left join rollup_head r on r.workspace_id = f.workspace_id
     where f.workspace_id = ${workspaceId} and f.field = ${field}
       and f.dropped_seq > coalesce(r.floor_seq, 0)`.execute(db)
  return rows.length === 0
}

function columnOf(field: ValueField): RawBuilder<unknown> {
  return field === 'projectId' ? sql`project_id::text collate "C"` : SEARCHED_COLUMNS[field]
}
