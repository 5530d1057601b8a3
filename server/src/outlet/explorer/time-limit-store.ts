import { sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import { type Queryable, sqlStateOf } from '../../platform/pg/database.ts'

/** Users don't wait longer for a page. A search has at most one slow statement. */
const READ_MS_MAX = 10_000
const QUERY_CANCELED = '57014'

/**
 * For reads that may have to scan every event. All statements see the same snapshot. If one takes too long,
 * the error says how to narrow the search.
 */
export async function withTimeLimit<T>(
  db: Queryable,
  read: (trx: Queryable) => Promise<T>,
  limitMs: number = READ_MS_MAX,
): Promise<T> {
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  try {
    return await snapshot.execute(async (trx) => {
      await sql`select set_config('statement_timeout', ${String(limitMs)}, true)`.execute(trx)
      return await read(trx)
    })
  } catch (error) {
    if (sqlStateOf(error) !== QUERY_CANCELED) throw error
    throw new ApiError('overloaded', {
      message:
        'This search takes too long. Choose a shorter time range, or add a filter such as a category or an actor.',
      cause: error,
    })
  }
}
