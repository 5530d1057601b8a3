import { type RawBuilder, sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** The number of values per block. Searching a block costs as much as looking up ten single values. */
const BLOCK_VALUES = 500
/** Each run with new values adds a short block. Above this number, they are merged. */
const SHORT_BLOCKS_MAX = 50
/** The blocks are rebuilt when deleted and duplicate values exceed this number plus half of all values. */
const STALE_VALUES_MIN = 1_000

/** A part of a statement that inserts the (field, value) rows of a query as new blocks. */
export function insertBlocks(
  workspaceId: WorkspaceId,
  values: RawBuilder<unknown>,
): RawBuilder<unknown> {
  return sql`
    insert into event_value_block (workspace_id, field, size, folded, items)
    select ${workspaceId}, field, count(*), string_agg(lower(value), chr(1)), array_agg(value)
      from (select field, value,
                   (row_number() over (partition by field) - 1) / ${sql.lit(BLOCK_VALUES)} as nth
              from (${values}) as v) as numbered
     group by field, nth`
}

/**
 * Call this after a run is counted and its new values are added. Rebuilds the blocks of fields that have
 * many deleted values, and merges short blocks.
 */
export async function settleBlocks(trx: Queryable, workspaceId: WorkspaceId): Promise<void> {
  const { rows } = await sql<{ field: string; isFresh: boolean }>`
    ${KEEP_PLAN}
    select f.field, f.is_fresh as "isFresh"
      from (select e.field, b.short,
                   b.items <= e.value_count * 3 / 2 + ${sql.lit(STALE_VALUES_MIN)} as is_fresh
              from event_field e
             cross join lateral (
               select coalesce(sum(size), 0) as items,
                      count(*) filter (where size < ${sql.lit(BLOCK_VALUES)}) as short
                 from event_value_block
                where workspace_id = ${workspaceId} and field = e.field) as b
             where e.workspace_id = ${workspaceId}) as f
     where not f.is_fresh or f.short > ${sql.lit(SHORT_BLOCKS_MAX)}`.execute(trx)
  for (const { field, isFresh } of rows) {
    await (isFresh ? mergeShortBlocks : rebuildBlocks)(trx, workspaceId, field)
  }
}

async function rebuildBlocks(
  trx: Queryable,
  workspaceId: WorkspaceId,
  field: string,
): Promise<void> {
  await sql`
    delete from event_value_block where workspace_id = ${workspaceId} and field = ${field}`.execute(
    trx,
  )
  const values = sql`
    select field, value from event_value where workspace_id = ${workspaceId} and field = ${field}`
  await insertBlocks(workspaceId, values).execute(trx)
}

async function mergeShortBlocks(
  trx: Queryable,
  workspaceId: WorkspaceId,
  field: string,
): Promise<void> {
  const values = sql`select field, item as value from short cross join lateral unnest(items) as item`
  await sql`
    with short as (
      delete from event_value_block
       where workspace_id = ${workspaceId} and field = ${field} and size < ${sql.lit(BLOCK_VALUES)}
      returning field, items)
    ${insertBlocks(workspaceId, values)}`.execute(trx)
}
