import type { Config } from '../config.ts'
import type { DataSource } from '../data-source.ts'
import { createLogger } from '../platform/logger.ts'
import { Database } from '../platform/pg/database.ts'
import { openCommandDataSource } from './open-command-data-source.ts'

/**
 * Opens one database connection for a command, with or without a running service. It logs to stderr, so
 * that stdout contains only the command's output.
 */
export async function openDatabase(
  config: Config,
  { mayCreate }: { mayCreate: boolean },
): Promise<
  AsyncDisposable & Pick<DataSource, 'secretKey' | 'connection'> & Pick<Database, 'pool' | 'db'>
> {
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  const dataSource = stack.use(await openCommandDataSource(config, { logger, mayCreate }))
  const { connection } = dataSource
  const { pool, db } = stack.use(
    new Database({ connection, role: 'annals_serving', connectionsMax: 1, logger }),
  )
  const kept = stack.move()
  return {
    pool,
    db,
    connection,
    // Read on access, as most commands don't need it.
    get secretKey() {
      return dataSource.secretKey
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
