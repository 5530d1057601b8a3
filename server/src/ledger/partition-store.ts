import { sql } from 'kysely'
import type { Queryable } from '../platform/pg.ts'

/** Makes the month's partition when it is missing, with what the default holds of it. True when made. */
export async function ensurePartition(db: Queryable, monthMs: number): Promise<boolean> {
  const { rows } = await sql<{ made: boolean }>`
    select ensure_event_partition(${new Date(monthMs)}) as made`.execute(db)
  return rows[0]?.made === true
}

/** Where the default partition's rows belong: the first instant of each month, oldest first. */
export async function listStrayMonths(
  db: Queryable,
  { limit }: { limit: number },
): Promise<number[]> {
  const { rows } = await sql<{ month: Date }>`
    select distinct date_trunc('month',
             to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0),
             'UTC') as month
      from event_default
     order by month
     limit ${limit}`.execute(db)
  return rows.map(({ month }) => month.getTime())
}
