import { sql } from 'kysely'
import { type Queryable, SQLSTATE, sqlStateOf } from '../../platform/pg/database.ts'

/** Moving more rows would take longer than a few seconds, and every query would wait that long. */
const MOVED_ROWS_MAX = 20_000

type PartitionState = 'created' | 'exists' | 'busy' | 'tooLarge'

/**
 * Creates the month's partition if it is missing, and moves the month's events from the default partition
 * to it. Its lock waits for all running queries, such as a `pg_dump`, and new queries wait for the lock. So
 * it waits only briefly, and returns `busy` if that isn't enough. If the default partition has too many
 * events of the month, they stay there (`tooLarge`).
 */
export async function ensurePartition(
  db: Queryable,
  monthMs: number,
  movedRowsMax: number = MOVED_ROWS_MAX,
): Promise<PartitionState> {
  const month = new Date(monthMs)
  if ((await countStray(db, month, movedRowsMax + 1)) > movedRowsMax) return 'tooLarge'
  try {
    return await db.transaction().execute((trx) => createPartition(trx, month))
  } catch (error) {
    if (sqlStateOf(error) === SQLSTATE.LOCK_NOT_AVAILABLE) return 'busy'
    throw error
  }
}

/** Not in the transaction of the move, whose lock would wait for the same transaction on other nodes. */
async function countStray(db: Queryable, month: Date, limit: number): Promise<number> {
  const { rows } = await sql`
    select from event_default
     where id >= event_id_floor(date_trunc('month', ${month}::timestamptz, 'UTC'))
       and id < event_id_floor(date_trunc('month', ${month}::timestamptz, 'UTC') + interval '1 month')
     limit ${limit}`.execute(db)
  return rows.length
}

async function createPartition(trx: Queryable, month: Date): Promise<'created' | 'exists'> {
  await sql`set local lock_timeout = '200ms'`.execute(trx)
  const { rows } = await sql<{ isCreated: boolean }>`
    select ensure_event_partition(${month}) as "isCreated"`.execute(trx)
  return rows[0]?.isCreated === true ? 'created' : 'exists'
}

/** The months whose events are in the default partition: the first instant of each, oldest first. */
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
