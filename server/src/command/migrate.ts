import type { Config } from '../config.ts'
import { createLogger } from '../platform/logger.ts'
import { SERVER_WAIT_MS_MAX } from '../platform/pg/wait-for-server.ts'
import { openCommandDataSource } from './open-command-data-source.ts'
import { printLines } from './output/print.ts'

/** `annals migrate`: runs the migrations that every startup runs, and nothing else. */
export async function migrateDatabase(config: Config): Promise<void> {
  const logger = createLogger('info', 'stderr')
  const options = { logger, mayCreate: true, serverWaitMsMax: SERVER_WAIT_MS_MAX }
  const dataSource = await openCommandDataSource(config, options)
  await dataSource[Symbol.asyncDispose]()
  printLines('The database is up to date.')
}
