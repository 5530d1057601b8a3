import { sql } from 'kysely'
import { type Queryable, SQLSTATE, sqlStateOf } from '../platform/pg.ts'

/**
 * Creates the month's partition if it is missing, with the month's events in the default partition.
 * Every query that begins meanwhile waits for its lock, and the lock waits for every query that is
 * running, such as a `pg_dump`. So it waits only briefly and is `busy` if that is not enough.
 */
export async function ensurePartition(
  db: Queryable,
  monthMs: number,
): Promise<'created' | 'exists' | 'busy'> {
  try {
    return await db.transaction().execute((trx) => createPartition(trx, monthMs))
  } catch (error) {
    if (sqlStateOf(error) === SQLSTATE.LOCK_NOT_AVAILABLE) return 'busy'
    throw error
  }
}

async function createPartition(trx: Queryable, monthMs: number): Promise<'created' | 'exists'> {
  await sql`set local lock_timeout = '200ms'`.execute(trx)
  const { rows } = await sql<{ isCreated: boolean }>`
    select ensure_event_partition(${new Date(monthMs)}) as "isCreated"`.execute(trx)
  return rows[0]?.isCreated === true ? 'created' : 'exists'
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
