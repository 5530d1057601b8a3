import { sql } from 'kysely'
import { copyOut, CopyTooLargeError } from '../../platform/pg/copy-out.ts'
import type { Database } from '../../platform/pg/database.ts'
import { type RunQuery, selectRun, selectShortRows } from '../event-store.ts'
import { bufferFor, HOT_COLUMNS, ROW_BYTES } from './hot-page-store.ts'

/** In the order that `HotRow` expects. */
const COLUMNS = sql`${HOT_COLUMNS}, actor_id, actor_email, resource_type, resource_id`
/** Twice as much as a long run of events of a usual size. */
const SHORT_ROWS_BYTES_MAX = 4 * 1_024 * 1_024
/** Much more than a run needs, unless its last row is larger than any request. */
const COPY_BYTES_MAX = 16 * 1_024 * 1_024

/**
 * Reads runs of a chain with their facets, in the binary format of `copy`. Each run overwrites the one before it.
 * After one with large rows, PostgreSQL adds up the sizes of the rows and sends fewer of them.
 */
export class ChainRowReader {
  readonly #database: Pick<Database, 'pool' | 'db'>
  #mayBeLarge = false
  #reuse: Buffer | undefined

  constructor(database: Pick<Database, 'pool' | 'db'>) {
    this.#database = database
  }

  /** Null if the run is too large. */
  async read(run: RunQuery): Promise<Buffer | null> {
    if (!this.#mayBeLarge) {
      const bytes = await this.#copy(run, selectShortRows, SHORT_ROWS_BYTES_MAX)
      if (bytes !== null) return bytes
      this.#mayBeLarge = true
    }
    return await this.#copy(run, selectRun, COPY_BYTES_MAX)
  }

  async #copy(
    run: RunQuery,
    select: typeof selectShortRows,
    bytesMax: number,
  ): Promise<Buffer | null> {
    const { pool, db } = this.#database
    const room = bufferFor(run.limit * ROW_BYTES, this.#reuse)
    const query = select(COLUMNS, run).compile(db)
    try {
      const { bytes } = await copyOut(pool, query, { room, keptBytesMax: bytesMax, bytesMax })
      this.#reuse = bytes
      return bytes
    } catch (error) {
      if (error instanceof CopyTooLargeError) return null
      throw error
    }
  }
}
