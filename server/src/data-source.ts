import type { Config } from './config.ts'
import { startEngine } from './platform/engine/embedded-postgres.ts'
import { ENGINE_CONNECTIONS_MAX, type EngineSettings } from './platform/engine/settings.ts'
import type { Logger } from './platform/logger.ts'
import { migrate } from './platform/pg/migrate.ts'
import { parseDatabaseUrl } from './platform/pg/server-address.ts'
import { type Connection, ServerList } from './platform/pg/servers.ts'
import { startPrimaryWatch } from './platform/pg/primary-watch.ts'
import type { Secret } from './platform/secret/secret.ts'
import { readOrCreateSecretKey } from './platform/secret/secret-key.ts'

/** A reachable, migrated database and its secret key. */
export type DataSource = AsyncDisposable & {
  connection: Connection
  secretKey: Secret<Buffer>
  isEmbedded: boolean
}

/**
 * Opens the configured PostgreSQL server, or the embedded one in the data folder. A service locks the
 * folder (`exclusive`). Other commands share it, and the last one to leave stops the engine. Without
 * `mayCreate`, a missing database is an error: a new, empty one would make everything look fine. Without
 * `mayBeMoved`, so is a ledger that was moved to another database. A
 * configured server that is starting gets `serverWaitMsMax`; the engine has its own limit.
 */
export async function openDataSource(
  config: Config,
  {
    logger,
    exclusive,
    mayCreate,
    mayBeMoved = false,
    serverWaitMsMax = 0,
    signal,
  }: {
    logger: Logger
    exclusive: boolean
    mayCreate: boolean
    mayBeMoved?: boolean
    serverWaitMsMax?: number
    signal?: AbortSignal | undefined
  },
): Promise<DataSource> {
  const configuredKey = config.secretKey ?? config.secretKeyFile
  if (config.databaseUrl) {
    const connection = new ServerList(parseDatabaseUrl(config.databaseUrl.reveal()))
    await migrate({ connection, logger, mayCreate, mayBeMoved, serverWaitMsMax, signal })
    if (!configuredKey) throw new Error('parseConfig asks for a key with a database address')
    const watch = connection.needsPrimary ? startPrimaryWatch({ connection, logger }) : null
    return {
      connection,
      secretKey: configuredKey,
      isEmbedded: false,
      [Symbol.asyncDispose]: async () => await watch?.[Symbol.asyncDispose](),
    }
  }
  await using stack = new AsyncDisposableStack()
  const engine = stack.use(
    await startEngine({
      dataDir: config.dataDir,
      exclusive,
      mayCreate,
      logger,
      settings: settingsFor(config),
      signal,
    }),
  )
  await migrate({ connection: engine.connection, logger, mayCreate, mayBeMoved, signal })
  stack.move()
  return {
    connection: engine.connection,
    // Read on access: most commands don't need it, and a bad file must not stop them.
    get secretKey() {
      return configuredKey ?? readOrCreateSecretKey(config.dataDir)
    },
    isEmbedded: true,
    // Not the stack's dispose method: a second call to it would not wait for the first.
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}

/** What an API process opens at most, with a margin. See docs/operations.md, "Connections". */
export const CONNECTIONS_PER_PROCESS = 40

/** All commands start the engine with room for the API processes, because a service can join it later. */
function settingsFor({ apiProcesses }: Config): EngineSettings {
  if (apiProcesses === 1) return {}
  const connections = ENGINE_CONNECTIONS_MAX + apiProcesses * CONNECTIONS_PER_PROCESS
  return { max_connections: String(connections) }
}
