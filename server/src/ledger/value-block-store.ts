import { type RawBuilder, sql } from 'kysely'
import type { WorkspaceId } from '../platform/id.ts'
import { KEEP_PLAN } from '../platform/kept-plan.ts'
import type { Queryable } from '../platform/pg.ts'
import type { RollupHead, ValueField } from './rollup-store.ts'

/** Values in a block. To search a block costs as much as ten values one by one. */
const BLOCK_VALUES = 500
/** So many short blocks, one of each run with new values, before they are put together. */
const SHORT_BLOCKS_MAX = 50
/** So many values that are gone or there twice, and half of all, before the blocks are made anew. */
const SUPERFLUOUS_MIN = 1_000

/** As a part of a statement: puts (field, value) of a query into new blocks. */
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
 * After a run was counted, which added its new values: `head` is where the roll-up was, `seenSeq` and
 * `floorSeq` where it is. Blocks of fields that somebody else counted, or of which much is gone, are
 * made anew; short ones are put together.
 */
export async function settleBlocks(
  trx: Queryable,
  {
    workspaceId,
    head,
    seenSeq,
    floorSeq,
  }: { workspaceId: WorkspaceId; head: RollupHead; seenSeq: number; floorSeq: number },
): Promise<void> {
  const { rows } = await sql<{ field: string; isWhole: boolean }>`
    ${KEEP_PLAN}
    select f.field, f.is_whole as "isWhole"
      from (select e.field, b.short,
                   e.listed_seq = ${head.seenSeq} and e.listed_floor <= ${head.floorSeq}
                     and b.items <= e.value_count * 3 / 2 + ${sql.lit(SUPERFLUOUS_MIN)} as is_whole
              from event_field e
             cross join lateral (
               select coalesce(sum(size), 0) as items,
                      count(*) filter (where size < ${sql.lit(BLOCK_VALUES)}) as short
                 from event_value_block
                where workspace_id = ${workspaceId} and field = e.field) as b
             where e.workspace_id = ${workspaceId}) as f
     where not f.is_whole or f.short > ${sql.lit(SHORT_BLOCKS_MAX)}`.execute(trx)
  for (const { field, isWhole } of rows) {
    await (isWhole ? joinShortBlocks : makeBlocks)(trx, workspaceId, field)
  }
  await sql`
    ${KEEP_PLAN}
    update event_field set listed_seq = ${seenSeq}, listed_floor = ${floorSeq}
     where workspace_id = ${workspaceId} and (listed_seq, listed_floor) <> (${seenSeq}, ${floorSeq})`.execute(
    trx,
  )
}

async function makeBlocks(trx: Queryable, workspaceId: WorkspaceId, field: string): Promise<void> {
  await sql`
    delete from event_value_block where workspace_id = ${workspaceId} and field = ${field}`.execute(
    trx,
  )
  const values = sql`
    select field, value from event_value where workspace_id = ${workspaceId} and field = ${field}`
  await insertBlocks(workspaceId, values).execute(trx)
}

async function joinShortBlocks(
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

/** Whether the blocks of these fields have every value that is listed. */
export async function hasBlocks(
  db: Queryable,
  { workspaceId, fields }: { workspaceId: WorkspaceId; fields: readonly ValueField[] },
): Promise<boolean> {
  const { rows } = await sql`
    ${KEEP_PLAN}
    select 1
      from event_field f join rollup_head r on r.workspace_id = f.workspace_id
     where f.workspace_id = ${workspaceId} and f.field = any (${fields}::text[])
       and (f.listed_seq <> r.seen_seq or f.listed_floor > r.floor_seq)
     limit 1`.execute(db)
  return rows.length === 0
}
