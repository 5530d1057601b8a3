import type { Client } from 'pg'
import { SQLSTATE, sqlStateOf } from '../platform/pg.ts'
import { awaitStandby } from './append-store.ts'

/** Settings for the connection that `probeWrite` runs on. */
export const WRITE_PROBE_SETTINGS = [
  'role=annals_serving',
  // The minimum, so that the rows below go to a temporary file.
  'work_mem=64kB',
  // The default tablespace, so that the file is on the same disk as the tables.
  'temp_tablespaces=',
]

/**
 * Changes no row, but fails on a server that doesn't accept writes: a standby, a server that an operator
 * or a provider made read-only, or one where the role lost its grants.
 */
const UPDATE_NOTHING = 'update chain_head set seq = seq where false'

/**
 * Writes 0.8 MB to a temporary file, which PostgreSQL deletes after the statement. It fails on a full
 * disk, and neither tables nor the write-ahead log grow. Takes 1 ms; small rows took 20 ms.
 */
const WRITE_FILE = `select count(*) from unnest(array_fill(repeat('x', 8192), array[96]))`

/**
 * Resolves if the database accepts writes, and rejects if it doesn't. If commits wait for a standby, it
 * also commits an empty message (about 100 bytes of write-ahead log) and waits for the standby.
 */
export async function probeWrite(client: Client): Promise<void> {
  await client.query(UPDATE_NOTHING)
  try {
    await client.query(WRITE_FILE)
  } catch (error) {
    // Disabled temporary files don't mean that the disk is full.
    if (sqlStateOf(error) !== SQLSTATE.CONFIGURATION_LIMIT_EXCEEDED) throw error
  }
  const { rows } = await client.query<{ isSynchronous: boolean }>(
    `select current_setting('synchronous_standby_names') <> '' as "isSynchronous"`,
  )
  if (rows[0]?.isSynchronous) await awaitStandby(client)
}
