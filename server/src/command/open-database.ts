import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { engineFiles } from '../platform/engine-files.ts'
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

/**
 * For a command that makes nothing: in the wrong folder it would begin an empty database there, and
 * find that all is well with it.
 */
export function refuseNoData({ databaseUrl, dataDir }: Config): void {
  if (databaseUrl || existsSync(engineFiles(dataDir).engine)) return
  throw new OperatorError(
    `There is no data in ${resolve(dataDir)}, or none that you may see. Run this where the service runs, ` +
      'or set ANNALS_DATA_DIR to its data folder.',
  )
}
