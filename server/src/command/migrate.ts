import type { Config } from '../config.ts'
import { createLogger } from '../platform/logger.ts'
import { openCommandStore } from './open-command-store.ts'

/** `annals migrate`: runs the migrations that every startup runs, and nothing else. */
export async function migrateOnly(config: Config): Promise<void> {
  const logger = createLogger('info', 'stderr')
  const store = await openCommandStore(config, { logger, mayCreate: true })
  await store[Symbol.asyncDispose]()
  process.stdout.write('The database is up to date.\n')
}
