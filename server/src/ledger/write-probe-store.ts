import type { Client } from 'pg'
import { SQLSTATE, sqlStateOf } from '../platform/pg/database.ts'
import { appendEvents, awaitStandby } from './append-store.ts'

/** Settings for the connection that `probeWrite` runs on. */
export const WRITE_PROBE_SETTINGS = [
  'role=annals_serving',
  // The same plan as the writer's, so that the append below doesn't scan a table.
  'enable_seqscan=off',
  'plan_cache_mode=force_generic_plan',
  // The minimum, so that the rows below are written to a file.
  'work_mem=64kB',
  // The default tablespace, so that the file is on the same disk as the tables.
  'temp_tablespaces=',
]

/**
 * An append without events. It changes no rows, but PostgreSQL checks permissions before it looks for rows:
 * a standby, a read-only server, and a server where the role lost a privilege reject it.
 */
const EMPTY_APPEND = { moves: [], rows: [], keys: [] } as const

const IS_SYNCHRONOUS = `current_setting('synchronous_standby_names') <> '' as "isSynchronous"`

/**
 * Writes 0.8 MB to a temporary file, which PostgreSQL deletes after the statement. It fails on a full disk,
 * and grows neither the tables nor the write-ahead log. Takes 1 ms; with small rows it took 20 ms.
 */
const WRITE_FILE = `select count(*), ${IS_SYNCHRONOUS} from unnest(array_fill(repeat('x', 8192), array[96]))`

/**
 * Resolves if the database accepts writes, and rejects if it doesn't. If commits wait for a standby, it
 * also commits an empty message (about 100 bytes of write-ahead log) and waits for the standby.
 */
export async function probeWrite(client: Client): Promise<void> {
  await appendEvents(client, EMPTY_APPEND)
  if (await writeFile(client)) await awaitStandby(client)
}

/** Returns whether commits wait for a standby. */
async function writeFile(client: Client): Promise<boolean> {
  const read = async (statement: string) => {
    const { rows } = await client.query<{ isSynchronous: boolean }>(statement)
    return rows[0]?.isSynchronous === true
  }
  try {
    return await read(WRITE_FILE)
  } catch (error) {
    // An error because temporary files are disabled doesn't mean that the disk is full.
    if (sqlStateOf(error) !== SQLSTATE.CONFIGURATION_LIMIT_EXCEEDED) throw error
    return await read(`select ${IS_SYNCHRONOUS}`)
  }
}
