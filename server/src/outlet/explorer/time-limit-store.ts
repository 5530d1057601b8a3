import { sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import { type Queryable, SQLSTATE, sqlStateOf } from '../../platform/pg/database.ts'

/** Users don't wait longer for a page. A search has at most one slow statement. */
const READ_MS_MAX = 10_000

/**
 * For reads that may have to scan every event. All statements see the same snapshot. If one takes too long,
 * the error says how to narrow the search. A transaction is a snapshot, and has a limit already.
 */
export async function withTimeLimit<T>(
  db: Queryable,
  read: (trx: Queryable) => Promise<T>,
  limitMs: number = READ_MS_MAX,
): Promise<T> {
  try {
    if (db.isTransaction) return await read(db)
    const snapshot = db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
    return await snapshot.execute(async (trx) => {
      await sql`select set_config('statement_timeout', ${String(limitMs)}, true)`.execute(trx)
      return await read(trx)
    })
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.QUERY_CANCELED) throw error
    throw new ApiError('overloaded', {
      message:
        'This search takes too long. Choose a shorter time range, or add a filter such as a category or an actor.',
      cause: error,
    })
  }
}
