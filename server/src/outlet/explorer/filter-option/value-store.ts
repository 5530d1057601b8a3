import { type RawBuilder, sql } from 'kysely'
import { SEARCHED_FIELDS, type SearchedField } from '../../../ledger/filter/event-filter.ts'
import { foldCase } from '../../../platform/fold-case.ts'
import type { ValueField } from '../../../ledger/rollup/rollup-store.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import { KEEP_PLAN } from '../../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../../platform/pg/database.ts'

/** A value that contains a text, and how many events have it. */
export type TextMatch = { field: SearchedField; value: string; events: number }

type TextMatches = {
  matches: TextMatch[]
  /** Events above this seq may have values that are not listed yet. */
  seenSeq: number
  /** False if some field has too many values to list, or if more values match than the limit. */
  isComplete: boolean
}

type MatchRow = {
  seenSeq: number
  isComplete: boolean
  field: SearchedField | null
  value: string
  events: number
}

/** Finds the listed values that contain a text. Call it inside a transaction with a single snapshot. */
export async function findTextMatches(
  db: Queryable,
  { workspaceId, text, limit }: { workspaceId: WorkspaceId; text: string; limit: number },
): Promise<TextMatches> {
  const found = valuesContaining({ workspaceId, fields: SEARCHED_FIELDS, text, limit: limit + 1 })
  const { rows } = await sql<MatchRow>`
    ${KEEP_PLAN}
    with found as materialized (${found})
    select h.seen_seq as "seenSeq", h.is_complete as "isComplete", m.field, m.value, m.events
      from (select coalesce(max(r.seen_seq), 0) as seen_seq,
                   (select count(*) from found) <= ${limit} and not exists (
                     select from event_field f
                      where f.workspace_id = ${workspaceId} and f.field = any (${SEARCHED_FIELDS}::text[])
                        and f.dropped_seq > coalesce(max(r.floor_seq), 0)) as is_complete
              from rollup_head r where r.workspace_id = ${workspaceId}) as h
      left join (
        select v.field, v.value, v.events
          from (select distinct field, value from found) as found
         cross join lateral (
           select field, value, events from event_value
            where workspace_id = ${workspaceId} and field = found.field and value = found.value
           offset 0) as v
      ) as m on true`.execute(db)
  const matches = rows.flatMap(({ field, value, events }) =>
    field === null ? [] : [{ field, value, events }],
  )
  return {
    matches,
    seenSeq: rows[0]?.seenSeq ?? 0,
    isComplete: rows[0]?.isComplete === true,
  }
}

/**
 * A subquery for the (field, value) pairs that contain a text. It searches the blocks, which can return a
 * value that is gone, or a value twice.
 */
export function valuesContaining({
  workspaceId,
  fields,
  text,
  limit,
}: {
  workspaceId: WorkspaceId
  fields: readonly ValueField[]
  text: string
  limit: number
}): RawBuilder<unknown> {
  const folded = foldCase(text)
  return sql`
    select field, item as value
      from event_value_block cross join lateral unnest(items) as item
     where workspace_id = ${workspaceId} and field = any (${fields}::text[])
       and position(${folded} in folded) > 0 and position(${folded} in lower(item)) > 0
     limit ${limit}`
}

/**
 * How many events up to `seenSeq` have these values. An event with two of them counts twice. Returns null if
 * a field has too many values to list them.
 */
export async function countListed(
  db: Queryable,
  {
    workspaceId,
    values,
  }: { workspaceId: WorkspaceId; values: readonly { field: ValueField; value: string }[] },
): Promise<{ events: number; seenSeq: number } | null> {
  const fields = values.map(({ field }) => field)
  const texts = values.map(({ value }) => value)
  const { rows } = await sql<{ events: number; seenSeq: number }>`
    ${KEEP_PLAN}
    select coalesce(sum(v.events), 0)::bigint as events, r.seen_seq as "seenSeq"
      from rollup_head r
     cross join unnest(${fields}::text[], ${texts}::text[]) as wanted (field, value)
      left join lateral (
        select events from event_value
         where workspace_id = ${workspaceId} and field = wanted.field and value = wanted.value
        offset 0) as v on true
     where r.workspace_id = ${workspaceId}
       and not exists (
         select from event_field f
          where f.workspace_id = ${workspaceId} and f.field = any (${fields}::text[])
            and f.dropped_seq > r.floor_seq)
     group by r.seen_seq`.execute(db)
  return rows[0] ?? null
}

/** Whether all values of a field are listed. */
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

/** Skips `lower` for values that don't need it, as most: it takes as long as scanning the index. */
export function containsText(text: string): RawBuilder<unknown> {
  return sql`position(${foldCase(text)} in case when is_folded then value else lower(value) end) > 0`
}
