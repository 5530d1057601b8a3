import type { Config } from '../../config.ts'
import { openArchive } from '../../open-archive.ts'
import { readArchiveId } from '../../outlet/archive/archive-identity-store.ts'
import { findRunningEngine } from '../../platform/engine/attach.ts'
import { createLogger } from '../../platform/logger.ts'
import { Database } from '../../platform/pg/database.ts'
import { inspectSchema } from '../../platform/pg/migrate.ts'
import { hostAndPort, parseDatabaseUrl } from '../../platform/pg/server-address.ts'
import { type Connection, ServerList } from '../../platform/pg/servers.ts'
import { type Finding, finding, type Machine, type OpenLedger } from './check.ts'
import { secretKeyOf } from './check-keys.ts'
import { waitForDisk } from './wait-for-disk.ts'

/** A second one for checks after one that hangs. */
const CONNECTIONS_MAX = 2
const STATEMENT_MS_MAX = 8_000

type Opened = { found: Finding; ledger: OpenLedger | null }

/**
 * Connects to the database if it is running. Unlike other commands, it doesn't start the embedded engine, which would
 * write to the data folder, and applies no migrations.
 */
export async function openLedger(
  machine: Machine,
  { stack, isKeyReadable }: { stack: AsyncDisposableStack; isKeyReadable: boolean },
): Promise<Opened> {
  const connection = await connectionOf(machine.config)
  if (connection === null) {
    const message = 'The embedded engine is not running, so nothing in the database was checked.'
    const advice = 'Start the service, and run annals doctor while it runs.'
    return { found: finding.warning(message, advice), ledger: null }
  }
  const schema = await inspectSchema(connection)
  const logger = createLogger('silent')
  const database = stack.use(
    new Database({
      connection,
      role: 'annals_serving',
      connectionsMax: CONNECTIONS_MAX,
      statementMsMax: STATEMENT_MS_MAX,
      name: 'annals doctor',
      logger,
    }),
  )
  const { config } = machine
  const archive = stack.use(
    openArchive(config, { readArchiveId: () => readArchiveId(database.db) }),
  )
  const where =
    connection instanceof ServerList
      ? `at ${connection.servers.map(hostAndPort).join(', ')}`
      : 'in the data folder'
  const found = finding.ok(`PostgreSQL ${schema.serverVersion} ${where} accepts this login.`)
  // A damaged file has its own check. Most other checks don't need the key.
  const secretKey = isKeyReadable ? await secretKeyOf(config) : null
  return { found, ledger: { ...machine, database, archive, schema, secretKey } }
}

async function connectionOf({ databaseUrl, dataDir }: Config): Promise<Connection | null> {
  if (databaseUrl !== null) return new ServerList(parseDatabaseUrl(databaseUrl.reveal()))
  await waitForDisk(dataDir)
  return findRunningEngine(dataDir)
}
