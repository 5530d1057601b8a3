import { type RawBuilder, sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { postingListOf, POSTINGS_HEADER_BYTES } from './postings.ts'
import type { SearchToken } from './token-table.ts'

/** A block, and the lists of postings that some tokens would be in, in their order. */
export type PostedBlock = { firstSeq: number; seed: number; lists: readonly Buffer[] }

type PostedQuery = {
  workspaceId: WorkspaceId
  firstSeqs: readonly number[]
  tokens: readonly SearchToken[]
}

/** Reads the blocks that start at these sequence numbers and have postings. */
export async function listPostedBlocks(db: Queryable, query: PostedQuery): Promise<PostedBlock[]> {
  const { rows } = await postedBlocks<PostedBlock>(query, sql``).execute(db)
  return rows
}

/** Adds the facts of the blocks, to count their events. */
export async function listCountedBlocks(
  db: Queryable,
  query: PostedQuery,
): Promise<(PostedBlock & { facts: Buffer })[]> {
  const { rows } = await postedBlocks<PostedBlock & { facts: Buffer }>(
    query,
    sql`b.facts,`,
  ).execute(db)
  return rows
}

function postedBlocks<Row>(
  { workspaceId, firstSeqs, tokens }: PostedQuery,
  facts: RawBuilder<unknown>,
): RawBuilder<Row> {
  const endOf = (list: number) =>
    list < 0
      ? sql`0`
      : sql`(get_byte(h.ends, ${sql.lit(list * 2)}) + 256 * get_byte(h.ends, ${sql.lit(list * 2 + 1)}))`
  const listed = tokens.map((token) => {
    const list = postingListOf(token)
    return sql`
      substring(b.postings from ${sql.lit(POSTINGS_HEADER_BYTES + 1)} + ${endOf(list - 1)}
                for ${endOf(list)} - ${endOf(list - 1)})`
  })
  return sql<Row>`
    select b.first_seq as "firstSeq", b.seed, ${facts} array[${sql.join(listed)}] as lists
      from unnest(${firstSeqs}::bigint[]) as wanted (first_seq)
     cross join lateral (
       select first_seq, seed, facts, postings from search_block
        where workspace_id = ${workspaceId} and first_seq = wanted.first_seq and facts is not null
       offset 0) as b
     cross join lateral (
       select substring(b.postings from 1 for ${sql.lit(POSTINGS_HEADER_BYTES)}) as ends
       offset 0) as h`
}
