import type { Config } from '../config.ts'
import { acceptSecretKey } from '../outlet/webhook/secret/check-secret-key.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import { createLogger } from '../platform/logger.ts'
import { Database } from '../platform/pg/database.ts'
import { openCommandDataSource } from './open-command-data-source.ts'

/** `annals secret-key accept`: from now on, nodes start only with this secret key. */
export async function acceptKey(config: Config): Promise<void> {
  const logger = createLogger('warn', 'stderr')
  await using dataSource = await openCommandDataSource(config, { logger, mayCreate: false })
  const { connection, secretKey } = dataSource
  await using database = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  const unreadable = await acceptSecretKey({ db: database.db, secretKey, clock })
  process.stdout.write('The database now requires this secret key.\n')
  if (unreadable.length === 0) return
  process.stdout.write(
    `This key can't decrypt the secrets of ${unreadable.length} webhooks. Rotate each secret and set extra headers again; until then, nothing is sent to the webhook.\n`,
  )
  for (const { workspaceId, webhookId } of unreadable) {
    process.stdout.write(`  ${webhookId} (workspace ${workspaceId})\n`)
  }
}
