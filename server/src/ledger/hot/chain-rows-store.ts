import { sql } from 'kysely'
import { copyOut, CopyTooLargeError } from '../../platform/pg/copy-out.ts'
import type { Database } from '../../platform/pg/database.ts'
import { type RunQuery, selectRun } from '../event-store.ts'
import { bufferFor, HOT_COLUMNS, ROW_BYTES } from './hot-page-store.ts'

/** In the order that `HotRow` expects. */
const COLUMNS = sql`${HOT_COLUMNS}, actor_id, actor_email, resource_type, resource_id`
/** Much more than a run needs, unless its last row is larger than any request. */
const COPY_BYTES_MAX = 16 * 1_024 * 1_024

/**
 * Reads a run of a chain with its facets, in the binary format of `copy`. Null if it is too large. Overwrites the
 * buffer of an earlier run if it fits.
 */
export async function readChainRows(
  { pool, db }: Pick<Database, 'pool' | 'db'>,
  run: RunQuery,
  reuse?: Buffer,
): Promise<Buffer | null> {
  const query = selectRun(COLUMNS, run).compile(db)
  const room = bufferFor(run.limit * ROW_BYTES, reuse)
  const limits = { keptBytesMax: COPY_BYTES_MAX, bytesMax: COPY_BYTES_MAX }
  try {
    return (await copyOut(pool, query, { room, ...limits })).bytes
  } catch (error) {
    if (error instanceof CopyTooLargeError) return null
    throw error
  }
}
