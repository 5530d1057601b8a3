import { archiveUrlOf } from './archive-url-of.ts'
import type { Config } from './config.ts'
import { withDeadline } from './platform/time/deadline.ts'
import { startEngine } from './platform/engine/embedded-postgres.ts'
import { ENGINE_CONNECTIONS_MAX, type EngineSettings } from './platform/engine/settings.ts'
import { knownArchive } from './platform/object-store/known-archive.ts'
import type { Logger } from './platform/logger.ts'
import { migrate } from './platform/pg/migrate.ts'
import { type ObjectStore, StorageError } from './platform/object-store/object-store.ts'
import { openObjectStore } from './platform/object-store/open-object-store.ts'
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
 * `mayCreate`, a missing database is an error: a new, empty one would make everything look fine. A
 * configured server that is starting gets `serverWaitMsMax`; the engine has its own limit.
 */
export async function openDataSource(
  config: Config,
  {
    logger,
    exclusive,
    mayCreate,
    serverWaitMsMax = 0,
    signal,
  }: {
    logger: Logger
    exclusive: boolean
    mayCreate: boolean
    serverWaitMsMax?: number
    signal?: AbortSignal | undefined
  },
): Promise<DataSource> {
  const configuredKey = config.secretKey ?? config.secretKeyFile
  if (config.databaseUrl) {
    const connection = new ServerList(parseDatabaseUrl(config.databaseUrl.reveal()))
    await migrate({ connection, logger, mayCreate, serverWaitMsMax, signal })
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
  await migrate({ connection: engine.connection, logger, mayCreate, signal })
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

/** How long shutdown waits if opening the storage hangs. */
const ARCHIVE_CLOSE_MS_MAX = 1_000

/**
 * The storage for archived segments. It opens on first use, so that the service accepts events while the
 * storage is down. Without an archive, every call fails with a `StorageError`.
 */
export function openArchive(
  config: Config,
  { readArchiveId }: { readArchiveId: () => Promise<string | null> },
): ObjectStore {
  return openArchiveAt(placeOfArchive(config), { readArchiveId })
}

/** Where the archive is. A thread can get it from another one. */
export type ArchivePlace = {
  url: string | null
  s3Endpoint: string | null
  s3Region: string | null
}

export function placeOfArchive(config: Config): ArchivePlace {
  const { s3Endpoint, s3Region } = config
  return { url: archiveUrlOf(config), s3Endpoint, s3Region }
}

export function openArchiveAt(
  place: ArchivePlace,
  { readArchiveId }: { readArchiveId: () => Promise<string | null> },
): ObjectStore {
  const { url } = place
  return url === null ? noArchive() : knownArchive(openLazily(url, place), { url, readArchiveId })
}

function noArchive(): ObjectStore {
  const fail = async (key: string): Promise<never> => {
    throw new StorageError(
      `The archive file ${key} can't be read: this node has no archive (ANNALS_ARCHIVE_URL is not set).`,
      { summary: `No archive is configured, so the archive file ${key} can't be read.` },
    )
  }
  return {
    put: fail,
    read: fail,
    readRange: fail,
    readTagged: fail,
    replace: fail,
    list: fail,
    stat: fail,
    restore: fail,
    delete: fail,
    [Symbol.asyncDispose]: async () => {},
  }
}

function openLazily(url: string, { s3Endpoint, s3Region }: ArchivePlace): ObjectStore {
  let opening: Promise<ObjectStore> | null = null
  const open = async (): Promise<ObjectStore> => {
    opening ??= openObjectStore(url, { s3Endpoint, s3Region })
    try {
      return await opening
    } catch (error) {
      // The next call retries.
      opening = null
      throw error
    }
  }
  return {
    put: async (key, bytes, signal) => (await open()).put(key, bytes, signal),
    read: async (key, signal) => (await open()).read(key, signal),
    readRange: async (key, start, end, signal) => (await open()).readRange(key, start, end, signal),
    readTagged: async (key, signal) => (await open()).readTagged(key, signal),
    replace: async (key, write, signal) => (await open()).replace(key, write, signal),
    list: async (prefix, page, signal) => (await open()).list(prefix, page, signal),
    stat: async (key, signal) => (await open()).stat(key, signal),
    restore: async (key, signal) => (await open()).restore(key, signal),
    delete: async (key, signal) => (await open()).delete(key, signal),
    [Symbol.asyncDispose]: async () => {
      if (!opening) return
      const late = () => new Error('the archive is still being opened')
      const opened = withDeadline(opening, { timeoutMs: ARCHIVE_CLOSE_MS_MAX, late })
      await (await opened.catch(() => null))?.[Symbol.asyncDispose]()
    },
  }
}
