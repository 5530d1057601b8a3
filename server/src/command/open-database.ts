import type { Config } from '../config.ts'
import { createLogger } from '../platform/logger.ts'
import { Database, type Queryable } from '../platform/pg.ts'
import { openStore } from '../store.ts'

/**
 * One connection to the database, for a command that comes, asks and leaves; beside a running
 * service or alone. Its log goes to stderr, so that stdout holds the answer and nothing else.
 */
export async function openDatabase(config: Config): Promise<AsyncDisposable & { db: Queryable }> {
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  const { connection } = stack.use(await openStore(config, { logger, exclusive: false }))
  const { db } = stack.use(
    new Database({ connection, role: 'annals_serving', connectionsMax: 1, logger }),
  )
  const kept = stack.move()
  return { db, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}
