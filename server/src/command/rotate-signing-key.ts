import type { Config } from '../config.ts'
import { archiveUrlOf } from '../archive-url-of.ts'
import { openArchive } from '../open-archive.ts'
import { OperatorError } from '../errors.ts'
import { readArchiveId } from '../outlet/archive/archive-identity-store.ts'
import { announceKeys } from '../outlet/proof/key-list/announce-keys.ts'
import { rotateDerivedKey } from '../outlet/proof/key-list/key-list.ts'
import { checkSecretKey } from '../outlet/webhook/secret/check-secret-key.ts'
import { createLogger } from '../platform/logger.ts'
import { StorageError } from '../platform/object-store/object-store.ts'
import { Database } from '../platform/pg/database.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import { openCommandDataSource } from './open-command-data-source.ts'
import { auditAsOperator } from './operator.ts'
import { printLines } from './output/print.ts'

/** `annals signing-key rotate`: running nodes sign with the new key within a minute. */
export async function rotateSigningKey(config: Config): Promise<void> {
  if (config.signingKey ?? config.signingKeyFile) {
    throw new OperatorError(
      'This command replaces only a key that is derived from the secret key, but ANNALS_SIGNING_KEY or ANNALS_SIGNING_KEY_FILE is set. Set it to a new key (to create one, run: openssl rand -base64 32), set ANNALS_SIGNING_KEY_PREVIOUS to the old one, and restart all nodes.',
    )
  }
  if (archiveUrlOf(config) === null) {
    throw new OperatorError(
      'There is no signing key: without an archive, nothing is signed. Set ANNALS_ARCHIVE_URL.',
    )
  }
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  const dataSource = stack.use(await openCommandDataSource(config, { logger, mayCreate: false }))
  const { connection, secretKey } = dataSource
  const { db } = stack.use(
    new Database({ connection, role: 'annals_serving', connectionsMax: 1, logger }),
  )
  await checkSecretKey({ db, secretKey, clock })
  const archive = stack.use(openArchive(config, { readArchiveId: () => readArchiveId(db) }))
  const keySource = { secretKey, configured: null, previous: config.signingKeyPrevious }
  const deps = { db, archive, keySource, logger }
  const keys = await rotateDerivedKey(deps, clock).catch(rethrowForOperator)
  const [previous, current] = keys.slice(-2)
  printLines(
    `Checkpoints are now signed with the key ${current?.publicKey}.`,
    `The key ${previous?.publicKey} also signs until ${previous?.to}.`,
    'Running nodes use the new key within a minute. Give it to the people who verify checkpoints: /.well-known/annals.json lists both keys.',
  )
  await announceKeys(deps, auditAsOperator)
}

function rethrowForOperator(error: unknown): never {
  throw error instanceof StorageError ? new OperatorError(error.message, { cause: error }) : error
}
