import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'
import type { KeyListDeps } from '../../../src/outlet/proof/key-list/key-list-copies.ts'
import { newId } from '../../../src/platform/id.ts'
import { openObjectStore } from '../../../src/platform/object-store/open-object-store.ts'
import { Database } from '../../../src/platform/pg/database.ts'
import type { S3Server } from '../archive/s3-server.ts'
import { cloneDatabase, type TestDatabase } from '../database/template-db.ts'
import { TIMEOUT_FACTOR } from '../timing/timeout-factor.ts'

/** A database and an archive without a list of signing keys, and the errors and warnings that were logged. */
export type KeyStores = Omit<KeyListDeps, 'keySource'> &
  AsyncDisposable & {
    database: TestDatabase
    archiveUrl: string
    lines: Record<string, unknown>[]
  }

/** Without a bucket, the archive is a folder. */
export async function openKeyStores(s3: S3Server | null = null): Promise<KeyStores> {
  await using stack = new AsyncDisposableStack()
  const lines: Record<string, unknown>[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line)) })
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-keys-')))
  const archiveUrl = s3 ? `s3://${s3.bucket}/keys-${newId()}` : pathToFileURL(folder.path).href
  const location = { s3Endpoint: s3 && s3.endpoint, s3Region: null }
  const archive = stack.use(await openObjectStore(archiveUrl, location))
  const database = stack.use(await cloneDatabase())
  const { connection } = database
  const { db } = stack.use(
    new Database({
      connection,
      role: 'annals_serving',
      connectionsMax: 2,
      logger,
      timeoutFactor: TIMEOUT_FACTOR,
    }),
  )
  const kept = stack.move()
  const dispose = () => kept.disposeAsync()
  return { db, archive, logger, database, archiveUrl, lines, [Symbol.asyncDispose]: dispose }
}
