import type { Client } from 'pg'
import { SQLSTATE, sqlStateOf } from '../platform/pg.ts'
import { awaitStandby } from './append-store.ts'

/** Settings of a connection that `probeWrite` runs on. */
export const WRITE_PROBE_SETTINGS = [
  'role=annals_serving',
  // As little memory as there can be, so that the rows below go to a file,
  'work_mem=64kB',
  // on the disk of the tables.
  'temp_tablespaces=',
]

/**
 * Changes no row, but a server that takes no writes refuses it: a standby, one that an operator or a
 * provider made read-only, one where the role lost its grants.
 */
const UPDATE_NOTHING = 'update chain_head set seq = seq where false'

/**
 * Writes 0.8 MB to a temporary file, which PostgreSQL deletes with the statement: a full disk refuses
 * it, and neither a table nor the write-ahead log grows. Takes 1 ms; rows of a number each took 20.
 */
const WRITE_FILE = `select count(*) from unnest(array_fill(repeat('x', 8192), array[96]))`

/**
 * Returns when the database takes writes, and throws when it does not. Where commits wait for a
 * standby, it commits an empty message, about 100 bytes of the write-ahead log, and waits for the standby too.
 */
export async function probeWrite(client: Client): Promise<void> {
  await client.query(UPDATE_NOTHING)
  try {
    await client.query(WRITE_FILE)
  } catch (error) {
    // An operator who forbids temporary files has not filled the disk.
    if (sqlStateOf(error) !== SQLSTATE.CONFIGURATION_LIMIT_EXCEEDED) throw error
  }
  const { rows } = await client.query<{ isSynchronous: boolean }>(
    `select current_setting('synchronous_standby_names') <> '' as "isSynchronous"`,
  )
  if (rows[0]?.isSynchronous) await awaitStandby(client)
}
