import type { Config } from '../config.ts'
import { archiveUrlOf } from '../archive-url-of.ts'
import { openArchive } from '../open-archive.ts'
import { OperatorError } from '../errors.ts'
import { readArchiveId } from '../outlet/archive/archive-identity-store.ts'
import { acceptKeyList } from '../outlet/proof/key-list/key-list-copies.ts'
import { acceptSecretKey } from '../outlet/webhook/secret/check-secret-key.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import { createLogger } from '../platform/logger.ts'
import { StorageError } from '../platform/object-store/object-store.ts'
import { Database, type Queryable } from '../platform/pg/database.ts'
import type { Secret } from '../platform/secret/secret.ts'
import { openCommandDataSource } from './open-command-data-source.ts'
import { printLines } from './output/print.ts'

/** `annals secret-key accept`: from now on, nodes start only with this secret key. */
export async function acceptKey(config: Config): Promise<void> {
  const logger = createLogger('warn', 'stderr')
  await using dataSource = await openCommandDataSource(config, { logger, mayCreate: false })
  const { connection, secretKey } = dataSource
  await using database = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  const unreadable = await acceptSecretKey({ db: database.db, secretKey, clock })
  printLines('The database now requires this secret key.')
  reportUnreadable(unreadable)
  await acceptSigningKeys(config, database.db, secretKey)
}

function reportUnreadable(unreadable: Awaited<ReturnType<typeof acceptSecretKey>>): void {
  if (unreadable.length === 0) return
  printLines(
    `This key can't decrypt the secrets of ${unreadable.length} webhooks. Rotate each secret and set extra headers again; until then, nothing is sent to the webhook.`,
  )
  for (const { workspaceId, webhookId } of unreadable) {
    printLines(`  ${webhookId} (workspace ${workspaceId})`)
  }
}

/** Runs last, because it needs the archive. If the archive can't be reached, the command can be repeated. */
async function acceptSigningKeys(
  config: Config,
  db: Queryable,
  secretKey: Secret<Buffer>,
): Promise<void> {
  if (archiveUrlOf(config) === null) return
  await using archive = openArchive(config, { readArchiveId: () => readArchiveId(db) })
  const keySource = { secretKey, configured: null, previous: null }
  const list = await acceptKeyList({ db, archive, keySource }).catch((error: unknown) => {
    if (!(error instanceof StorageError)) throw error
    throw new OperatorError(
      `The list of signing keys was not accepted: ${error.message} Run the command again.`,
      { cause: error },
    )
  })
  if (list === null) return
  printLines(
    'The list of signing keys was accepted with these keys. Check that you know all of them:',
  )
  for (const { publicKey, from, to } of list.keys) {
    printLines(`  ${publicKey} (from ${from}${to === null ? '' : ` to ${to}`})`)
  }
}
