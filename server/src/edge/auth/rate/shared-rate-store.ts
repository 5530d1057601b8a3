import { sql } from 'kysely'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { BucketUse } from '../token-bucket.ts'

/** A bucket that several nodes use, as of the last report. */
export type SharedBucket = { name: string; tokens: number; wanted: number }

type ExchangedRow = SharedBucket & { isOwn: boolean }

/**
 * Takes the tokens that a node has used from the shared buckets, in one statement. Returns these buckets, and
 * the names of all buckets that nodes reported within `activeMs`. Demand counts less the older it is.
 */
export async function exchangeUse(
  db: Queryable,
  uses: readonly BucketUse[],
  {
    nowMs,
    activeMs,
    forgetMs,
    fadeMs,
    limit,
  }: { nowMs: number; activeMs: number; forgetMs: number; fadeMs: number; limit: number },
): Promise<{ own: SharedBucket[]; activeNames: string[] }> {
  const names = uses.map(({ name }) => name)
  // The database's clock was set back. Without this, callers would get no tokens until it catches up.
  const isFromFuture = sql`r.renewed_ms > excluded.renewed_ms + ${activeMs}::float8`
  const { rows } = await sql<ExchangedRow>`
    with reported as (
      insert into shared_rate as r (name, tokens, used, wanted, per_second, capacity, renewed_ms)
      select name, tokens, used, wanted, per_second, capacity, ${nowMs}::float8
        from unnest(${names}::uuid[], ${uses.map(({ tokens }) => tokens)}::float8[],
                    ${uses.map(({ used }) => used)}::float8[],
                    ${uses.map(({ wanted }) => wanted)}::float8[],
                    ${uses.map(({ perSecond }) => perSecond)}::float8[],
                    ${uses.map(({ capacity }) => capacity)}::float8[])
          as u (name, tokens, used, wanted, per_second, capacity)
       order by name
      on conflict (name) do update
         set tokens = case when ${isFromFuture} then excluded.capacity else
                        least(excluded.capacity,
                              r.tokens + greatest(0, excluded.renewed_ms - r.renewed_ms) / 1000
                                         * excluded.per_second) end - excluded.used,
             used = excluded.used,
             wanted = r.wanted * exp(-least(50, greatest(0, excluded.renewed_ms - r.renewed_ms)
                                                / ${fadeMs}::float8)) + excluded.wanted,
             per_second = excluded.per_second, capacity = excluded.capacity,
             renewed_ms = case when ${isFromFuture} then excluded.renewed_ms
                               else greatest(r.renewed_ms, excluded.renewed_ms) end
      returning name, tokens, wanted
    ), forgotten as (
      delete from shared_rate where name in (
        -- Another node may be renewing it, and wait for a row that this statement has locked.
        select name from shared_rate
         where renewed_ms < ${nowMs - forgetMs}::float8 and name <> all(${names}::uuid[])
           for update skip locked)
    )
    select name, tokens, wanted, true as "isOwn" from reported
    union all
    (select name, tokens, wanted, false from shared_rate
      where renewed_ms >= ${nowMs - activeMs}::float8
      limit ${sql.lit(limit)})`.execute(db)
  return {
    own: rows.filter(({ isOwn }) => isOwn),
    activeNames: rows.filter(({ isOwn }) => !isOwn).map(({ name }) => name),
  }
}
