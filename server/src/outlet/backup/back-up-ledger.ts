import { OperatorError } from '../../errors.ts'
import type { Database } from '../../platform/pg/database.ts'
import { ARCHIVE_PART, EVENTS_PART, KEY_PART, SIGNER_PART, TABLES_PART } from './backup-name.ts'
import { backUpEvents, EventsMovedError } from './back-up-events.ts'
import {
  type BackupFile,
  BackupFileWriter,
  checkSize,
  claimFolder,
  lockBackup,
  removeOthers,
} from './backup-file.ts'
import {
  type BackedUpHead,
  type CoveredEnd,
  coverageOf,
  indexPathOf,
  listEventFiles,
  missingRuns,
  neededFiles,
} from './event-coverage.ts'
import { LedgerSnapshot } from './ledger-snapshot.ts'
import {
  type BackupManifest,
  type BackupTable,
  readBackupManifest,
  writeBackupManifest,
} from './manifest.ts'
import {
  copyTableText,
  eventColumns,
  findOtherEvent,
  LEFT_OUT,
  listHeads,
  listMigrations,
  listPartitionMonths,
  listTables,
  readIdentities,
  type TableColumns,
} from './snapshot-store.ts'

const OBJECT_PARTS = [ARCHIVE_PART, SIGNER_PART, KEY_PART]
const TRIES_MAX = 3
const CHECKED_ENDS = 1_000

type BackupProgress = (step: 'events' | 'tables', done: number, total: number) => void

/** Copies what isn't in the database. `kept` are the files of the last backup in the folder. */
type BackUpObjects = (options: {
  snapshot: LedgerSnapshot
  name: string
  heads: readonly BackedUpHead[]
  archiveId: string | null
  kept: ReadonlyMap<string, BackupFile>
}) => Promise<BackupFile[]>

type BackupOptions = {
  database: Database
  folder: string
  archiveKind: BackupManifest['archive']['kind']
  backUpObjects: BackUpObjects
  onProgress: BackupProgress
}

export type BackedUp = { manifest: Omit<BackupManifest, 'version'>; newBytes: number }

/**
 * Copies the whole ledger into a folder while the service runs, as of one moment. A later backup into the same folder
 * copies only new events, because stored events don't change. Until it is complete, the earlier one stays valid.
 */
export async function backUpLedger(options: BackupOptions): Promise<BackedUp> {
  const { folder } = options
  await claimFolder(folder)
  using lock = await lockBackup(folder)
  if (lock === null) {
    throw new OperatorError(`Another backup to ${folder} is running. Wait until it is done.`)
  }
  for (let tries = 1; ; tries += 1) {
    try {
      return await backUpOnce(options)
    } catch (error) {
      if (!(error instanceof EventsMovedError)) throw error
      if (tries < TRIES_MAX) continue
      throw new OperatorError(
        `The backup is incomplete, because events were archived during each of ${TRIES_MAX} tries (${error.message}). Run it again: it continues where it stopped. If no events are being archived, run annals verify.`,
        { cause: error },
      )
    }
  }
}

async function backUpOnce(options: BackupOptions): Promise<BackedUp> {
  const { database, folder, archiveKind, onProgress } = options
  const previous = await readBackupManifest(folder)
  const kept = new Map(previous?.files.map((file) => [file.path, file]))
  const known = await listEventFiles(folder)
  for (const { file } of known) await checkSize(folder, file)
  const indexed = known.flatMap(({ file: { path } }) => [path, indexPathOf(path)])
  await removeOthers(folder, [EVENTS_PART, TABLES_PART], new Set([...kept.keys(), ...indexed]))

  await using snapshot = await LedgerSnapshot.open(database)
  const name = snapshot.takenAt.toISOString().replaceAll(/[-:.]/g, '')
  const state = await snapshot.read(async (client) => ({
    migrations: await listMigrations(client),
    months: await listPartitionMonths(client),
    tables: await listTables(client),
    heads: await listHeads(client),
    ...(await readIdentities(client)),
  }))
  const { heads, tables, archiveId, keyFingerprint } = state
  const covered = coverageOf(known)
  await refuseOtherLedger(snapshot, heads, covered, folder)
  const columns = eventColumns(columnsOf(tables, 'event'))
  let copied = 0
  const total = countMissing(heads, covered)
  onProgress('events', 0, total)
  const onEvents = (events: number) => onProgress('events', (copied += events), total)
  const added = await backUpEvents({ snapshot, folder, name, columns, heads, covered, onEvents })
  const eventFiles = [...neededFiles(known, heads), ...added]
  const rest = await backUpTables({ snapshot, folder, name, tables, onProgress })
  const objects = await options.backUpObjects({ snapshot, name, heads, archiveId, kept })
  await refuseMigrated(database, state.migrations)

  const events = {
    name: 'event',
    columns,
    rows: eventFiles.reduce((sum, { rows }) => sum + rows, 0),
    paths: eventFiles.map(({ file }) => file.path),
  }
  const files = [...eventFiles.map(({ file }) => file), ...rest.files, ...objects]
  const manifest = {
    createdAt: snapshot.takenAt.toISOString(),
    migrations: state.migrations,
    months: state.months,
    keyFingerprint,
    archive: { kind: archiveKind, id: archiveId },
    workspaces: heads.length,
    events: heads.reduce((sum, { seq }) => sum + seq, 0),
    archivedEvents: heads.reduce((sum, { archivedSeq }) => sum + archivedSeq, 0),
    tables: [...rest.tables, events],
    files,
  }
  await writeBackupManifest(folder, manifest)
  const indexes = eventFiles.map(({ file }) => indexPathOf(file.path))
  const current = new Set([...files.map(({ path }) => path), ...indexes])
  await removeOthers(folder, [EVENTS_PART, TABLES_PART, ...OBJECT_PARTS], current)
  return { manifest, newBytes: sizeOf(files.filter(({ path }) => !kept.has(path))) }
}

export function sizeOf(files: readonly BackupFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0)
}

function columnsOf(tables: readonly TableColumns[], name: string): string[] {
  const table = tables.find((candidate) => candidate.name === name)
  if (!table) throw new Error(`a database has a table ${name}`)
  return table.columns
}

function countMissing(
  heads: readonly BackedUpHead[],
  covered: ReadonlyMap<string, CoveredEnd>,
): number {
  let events = 0
  for (const { first, last } of missingRuns(heads, covered, Number.MAX_SAFE_INTEGER)) {
    events += last - first + 1
  }
  return events
}

/** Events of another ledger, or of a history that was replaced, must not be mixed with these. */
async function refuseOtherLedger(
  snapshot: LedgerSnapshot,
  heads: readonly BackedUpHead[],
  covered: ReadonlyMap<string, CoveredEnd>,
  folder: string,
): Promise<void> {
  const headOf = new Map(heads.map((head) => [head.workspaceId, head]))
  const refusal = (workspaceId: string, seq: number) =>
    new OperatorError(
      `${folder} has a backup of another ledger: event ${seq} of workspace ${workspaceId} is different in the database or missing from it. Nothing was changed. Back up to a new folder.`,
    )
  const ends: (CoveredEnd & { workspaceId: string })[] = []
  for (const [workspaceId, end] of covered) {
    const head = headOf.get(workspaceId)
    if (!head || end.last > head.seq) throw refusal(workspaceId, end.last)
    // Archived events are not loaded from these files.
    if (end.last > head.archivedSeq) ends.push({ workspaceId, ...end })
  }
  for (let at = 0; at < ends.length; at += CHECKED_ENDS) {
    const other = await snapshot.read((client) =>
      findOtherEvent(client, ends.slice(at, at + CHECKED_ENDS)),
    )
    if (other) throw refusal(other.workspaceId, other.seq)
  }
}

/** Some migrations rewrite tables, and then older snapshots see an empty table. */
async function refuseMigrated(
  database: Database,
  before: BackupManifest['migrations'],
): Promise<void> {
  const client = await database.pool.connect()
  try {
    const now = await listMigrations(client)
    if (now.length === before.length) return
  } finally {
    client.release()
  }
  throw new OperatorError('The database was migrated during the backup. Run the backup again.')
}

async function backUpTables({
  snapshot,
  folder,
  name,
  tables,
  onProgress,
}: Pick<BackupOptions, 'folder' | 'onProgress'> & {
  snapshot: LedgerSnapshot
  name: string
  tables: readonly TableColumns[]
}): Promise<{ tables: BackupTable[]; files: BackupFile[] }> {
  const wanted = tables.filter(({ name: table }) => table !== 'event' && !LEFT_OUT.includes(table))
  const copied: BackupTable[] = []
  const files: BackupFile[] = []
  for (const table of wanted) {
    onProgress('tables', files.length, wanted.length)
    const path = `${TABLES_PART}/${name}-${table.name}.zst`
    await using writer = await BackupFileWriter.open(folder, path)
    let rows = 0
    const onRow = () => void (rows += 1)
    for await (const block of snapshot.copy(copyTableText(table), onRow)) await writer.write(block)
    const file = await writer.finish()
    copied.push({ ...table, rows, paths: [file.path] })
    files.push(file)
  }
  return { tables: copied, files }
}
