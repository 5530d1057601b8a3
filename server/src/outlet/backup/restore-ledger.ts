import { DatabaseError, type PoolClient } from 'pg'
import { OperatorError } from '../../errors.ts'
import type { Database } from '../../platform/pg/database.ts'
import { type BackupFile, checkBackupFile, readBackupFile } from './backup-file.ts'
import { loadRows } from './copy-stream.ts'
import { inLoadOrder } from './load-order.ts'
import type { BackupManifest } from './manifest.ts'
import {
  analyzeTables,
  continueIdentities,
  createPartitions,
  deleteArchivedEvents,
  findFilledTable,
  loadTableText,
  lockTables,
} from './restore-store.ts'
import {
  LEFT_OUT,
  listMigrations,
  listReferences,
  listTables,
  prepareSession,
} from './snapshot-store.ts'

type RestoreProgress = (step: 'check' | 'load' | 'archive', done: number, total: number) => void

/** Reads every file of a backup. Throws an OperatorError if one is damaged. */
export async function checkBackup(
  folder: string,
  { files }: BackupManifest,
  onProgress: RestoreProgress,
): Promise<void> {
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  const onBytes = (bytes: number) => onProgress('check', (done += bytes), total)
  for (const file of files) await checkBackupFile(folder, file, onBytes)
}

type RestoreOptions = {
  database: Database
  folder: string
  manifest: BackupManifest
  /** Runs after the check that the database is empty, and before its rows are loaded. */
  restoreObjects: () => Promise<void>
  onProgress: RestoreProgress
}

/** Loads a backup into an empty database, in one transaction: if it fails, the database stays empty. */
export async function restoreLedger(options: RestoreOptions): Promise<void> {
  const { database, manifest } = options
  const client = await database.pool.connect()
  let isOver = false
  try {
    await prepareSession(client)
    await refuseOtherSchema(client, manifest)
    await client.query('begin')
    const names = (await listTables(client))
      .map(({ name }) => name)
      .filter((name) => name !== 'schema_migration')
    await lockTables(client, names)
    const filled = await findFilledTable(client, names)
    if (filled !== null) {
      throw new OperatorError(
        `Nothing was restored, because the database is not empty: the table ${filled} has rows. Restore into a new database or a new data folder.`,
      )
    }
    refuseOtherTables(names, manifest)
    await options.restoreObjects()
    await load(client, options).catch(explainContent)
    await analyzeTables(client)
    isOver = true
  } finally {
    client.release(!isOver)
  }
}

async function refuseOtherSchema(client: PoolClient, manifest: BackupManifest): Promise<void> {
  const migrations = await listMigrations(client)
  const wanted = manifest.migrations
  const isSame =
    migrations.length === wanted.length &&
    migrations.every(({ checksum }, nth) => checksum === wanted[nth]?.checksum)
  if (isSame) return
  const difference =
    migrations.length === wanted.length
      ? 'the backup has other migrations than this release and database'
      : `the backup has schema version ${wanted.length}, but this release and database have ${migrations.length}`
  throw new OperatorError(
    `Nothing was restored: ${difference}. Restore it with the release that created it, then upgrade.`,
  )
}

/** The same schema has the same tables. */
function refuseOtherTables(names: readonly string[], { tables }: BackupManifest): void {
  const wanted = names.filter((name) => !LEFT_OUT.includes(name))
  const found = tables.map(({ name }) => name)
  const [other] = [...new Set(wanted).symmetricDifference(new Set(found))]
  if (other === undefined) return
  const problem = wanted.includes(other) ? 'lacks the table' : 'has the unknown table'
  throw new OperatorError(`Nothing was restored: the backup ${problem} ${other}.`)
}

async function load(client: PoolClient, options: RestoreOptions): Promise<void> {
  await createPartitions(client, options.manifest.months)
  await loadTables(client, options)
  await deleteArchivedEvents(client)
  await continueIdentities(client)
  await client.query('commit')
}

/** The classes for values, constraints, names and raised exceptions: the database refuses the content. */
const CONTENT_STATES = /^(?:22|23|42|P0)/

function explainContent(error: unknown): never {
  if (!(error instanceof DatabaseError) || !CONTENT_STATES.test(error.code ?? '')) throw error
  throw new OperatorError(
    `Nothing was restored: the database refuses the content of the backup (${error.message}). Restore another backup.`,
    { cause: error },
  )
}

async function loadTables(
  client: PoolClient,
  { folder, manifest, onProgress }: RestoreOptions,
): Promise<void> {
  const files = new Map(manifest.files.map((file) => [file.path, file]))
  const paths = manifest.tables.flatMap((table) => table.paths)
  let done = 0
  const onFile = () => onProgress('load', done++, paths.length)
  for (const table of inLoadOrder(manifest.tables, await listReferences(client))) {
    const parts = table.paths.map((path) => {
      const file = files.get(path)
      if (!file) throw new Error('a manifest lists the files of its tables')
      return file
    })
    const rows = await loadRows(client, loadTableText(table), readAll(folder, parts, onFile))
    if (rows === table.rows) continue
    throw new OperatorError(
      `Nothing was restored: the table ${table.name} of the backup has ${rows} rows instead of ${table.rows}.`,
    )
  }
}

async function* readAll(
  folder: string,
  files: readonly BackupFile[],
  onFile: () => void,
): AsyncGenerator<Buffer, void, void> {
  for (const file of files) {
    onFile()
    yield* readBackupFile(folder, file)
  }
}
