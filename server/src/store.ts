import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Config } from './config.ts'
import { startEngine } from './platform/embedded-postgres.ts'
import type { Logger } from './platform/logger.ts'
import { migrate } from './platform/migrate.ts'
import { type ObjectStore, openObjectStore } from './platform/object-store.ts'
import type { Connection } from './platform/pg.ts'
import type { Secret } from './platform/secret.ts'
import { readOrMakeSecretKey } from './platform/secret-key.ts'

/** A database that is reached and migrated, and the key that belongs to it. */
export type Store = AsyncDisposable & {
  connection: Connection
  secretKey: Secret<Buffer>
  isEmbedded: boolean
}

/**
 * The given PostgreSQL, or the embedded one of the data folder. A service takes the folder for
 * itself (`exclusive`); other commands join it, and whoever leaves last stops the engine.
 */
export async function openStore(
  config: Config,
  { logger, exclusive }: { logger: Logger; exclusive: boolean },
): Promise<Store> {
  const givenKey = config.secretKey ?? config.secretKeyFile
  if (config.databaseUrl) {
    const connection = { connectionString: config.databaseUrl.reveal() }
    await migrate({ connection, logger })
    if (!givenKey) throw new Error('parseConfig asks for a key with a database address')
    return {
      connection,
      secretKey: givenKey,
      isEmbedded: false,
      [Symbol.asyncDispose]: async () => {},
    }
  }
  await using stack = new AsyncDisposableStack()
  const engine = stack.use(await startEngine({ dataDir: config.dataDir, exclusive, logger }))
  await migrate({ connection: engine.connection, logger })
  const kept = stack.move()
  return {
    connection: engine.connection,
    secretKey: givenKey ?? readOrMakeSecretKey(config.dataDir),
    isEmbedded: true,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/**
 * Where archived segments lie: as configured, or a folder of the data folder. Opened when it is first
 * needed: a storage that is out of reach is no reason to refuse events.
 */
export function openArchive(config: Config): ObjectStore {
  const url = config.archiveUrl ?? pathToFileURL(join(config.dataDir, 'archive')).href
  let opening: Promise<ObjectStore> | null = null
  const open = async (): Promise<ObjectStore> => {
    opening ??= openObjectStore(url, { s3Endpoint: config.s3Endpoint, s3Region: config.s3Region })
    try {
      return await opening
    } catch (error) {
      // The next one who needs it tries again.
      opening = null
      throw error
    }
  }
  return {
    put: async (key, bytes) => (await open()).put(key, bytes),
    read: async (key) => (await open()).read(key),
    readRange: async (key, start, end) => (await open()).readRange(key, start, end),
    stat: async (key) => (await open()).stat(key),
    restore: async (key) => (await open()).restore(key),
    delete: async (key) => (await open()).delete(key),
    [Symbol.asyncDispose]: async () => {
      const opened = await opening?.catch(() => null)
      await opened?.[Symbol.asyncDispose]()
    },
  }
}
