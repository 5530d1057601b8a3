import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import type { Config } from '../../config.ts'
import { archiveUrlOf } from '../../archive-url-of.ts'
import { openArchive } from '../../open-archive.ts'
import { OperatorError } from '../../errors.ts'
import { readArchiveId } from '../../outlet/archive/archive-identity-store.ts'
import { backUpArchive, backUpSigner } from '../../outlet/backup/archive-copy.ts'
import { type BackedUp, backUpLedger, sizeOf } from '../../outlet/backup/back-up-ledger.ts'
import { type BackupFile, writeSmallBackupFile } from '../../outlet/backup/backup-file.ts'
import { KEY_PART } from '../../outlet/backup/backup-name.ts'
import { listCatalog } from '../../outlet/backup/snapshot-store.ts'
import { createLogger } from '../../platform/logger.ts'
import { parseArchiveUrl } from '../../platform/object-store/archive-url.ts'
import { Database } from '../../platform/pg/database.ts'
import { fingerprintOf } from '../../platform/secret/secret-key.ts'
import type { Secret } from '../../platform/secret/secret.ts'
import { monotonicClock as clock } from '../../platform/time/clock.ts'
import { openCommandDataSource } from '../open-command-data-source.ts'
import { count, megabytes } from '../output/format.ts'
import { explainBackupError } from './explain-error.ts'
import { ProgressLine } from '../output/progress-line.ts'
import { listSignerObjects } from './signer-objects.ts'
import { printJson, printLines } from '../output/print.ts'

export type BackupCommandOptions = {
  to: string
  withoutArchive?: boolean
  withSecretKey?: boolean
  json?: boolean
}

/** Two for the snapshot, and one for reads outside of it. */
const CONNECTIONS_MAX = 3
const STEPS = { events: 'Events', tables: 'Tables', archive: 'Archive files' }

/** `annals backup`: copies the ledger into a folder while the service runs, or adds what is new. */
export async function backUp(config: Config, options: BackupCommandOptions): Promise<void> {
  const startedAtMs = clock()
  const folder = resolve(options.to)
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  const dataSource = stack.use(await openCommandDataSource(config, { logger, mayCreate: false }))
  const { connection } = dataSource
  const connectionsMax = CONNECTIONS_MAX
  const database = stack.use(new Database({ connection, role: 'owner', connectionsMax, logger }))
  const readId = () => readArchiveId(database.db)
  const archive = stack.use(openArchive(config, { readArchiveId: readId }))
  const archiveFolder = archiveFolderOf(config)
  await refuseInside(folder, [config.dataDir, ...(archiveFolder === null ? [] : [archiveFolder])])
  const source = options.withoutArchive ? null : archiveFolder
  const url = archiveUrlOf(config)
  const progress = stack.use(new ProgressLine())
  const backingUp = backUpLedger({
    database,
    folder,
    archiveKind: url === null ? 'none' : source === null ? 'external' : 'copied',
    onProgress: (step, done, total) => progress.show(STEPS[step], done, total),
    backUpObjects: async ({ snapshot, name, heads, archiveId, kept }) => {
      const files: BackupFile[] = []
      if (options.withSecretKey) files.push(await backUpKey(folder, dataSource.secretKey))
      if (source === null) return files
      const catalog = await snapshot.read(listCatalog)
      const onFile = (done: number, total: number) => progress.show(STEPS.archive, done, total)
      const signed = listSignerObjects({ archive, db: database.db, snapshot, heads })
      files.push(await backUpSigner(folder, name, signed))
      const copying = { source, folder, catalog, archiveId, kept, onFile }
      return [...files, ...(await backUpArchive(copying))]
    },
  })
  const result = await backingUp.catch((error: unknown) => {
    throw explainBackupError(error, folder)
  })
  progress[Symbol.dispose]()
  printSummary(options, { ...result, folder, seconds: (clock() - startedAtMs) / 1_000 })
}

/** Two programs would delete each other's files there. */
async function refuseInside(folder: string, used: readonly string[]): Promise<void> {
  const target = await realPathOf(folder)
  for (const path of used) {
    const outer = await realPathOf(resolve(path))
    if (target !== outer && !target.startsWith(`${outer}${sep}`)) continue
    throw new OperatorError(
      `${folder} is in ${path}, which the service uses. Choose another folder.`,
    )
  }
}

/** The real path of the part that exists, followed by the rest. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(await realPathOf(parent), basename(path))
  }
}

/** The archive's folder, or null if there is none on this machine. */
function archiveFolderOf(config: Config): string | null {
  const url = archiveUrlOf(config)
  const location = url === null ? null : parseArchiveUrl(url)
  return location?.kind === 'folder' ? location.path : null
}

/** The name contains the fingerprint, so a new key doesn't replace the one that the last backup needs. */
async function backUpKey(folder: string, secretKey: Secret<Buffer>): Promise<BackupFile> {
  const name = fingerprintOf(secretKey).toString('hex').slice(0, 16)
  const text = secretKey.reveal().toString('base64')
  return await writeSmallBackupFile(folder, `${KEY_PART}/${name}`, Buffer.from(text))
}

function printSummary(
  { withSecretKey = false, json = false }: BackupCommandOptions,
  { manifest, newBytes, folder, seconds }: BackedUp & { folder: string; seconds: number },
): void {
  const { createdAt, workspaces, events, archivedEvents, archive, keyFingerprint } = manifest
  const bytes = sizeOf(manifest.files)
  if (json) {
    const result = {
      folder,
      createdAt,
      workspaces,
      events,
      archivedEvents,
      bytes,
      newBytes,
      seconds: Math.round(seconds * 1_000) / 1_000,
      archive: archive.kind,
      keyFingerprint,
      includesSecretKey: withSecretKey,
    }
    printJson(result)
    return
  }
  const lines = [
    `Backed up ${count(events)} events of ${count(workspaces)} workspaces, as of ${createdAt}, to ${folder}: ${megabytes(bytes)}, of which ${megabytes(newBytes)} are new.`,
  ]
  if (archive.kind === 'external') {
    lines.push(
      `The archive is not included${archivedEvents > 0 ? `, with ${count(archivedEvents)} of these events` : ''}. A restore needs the archive itself, so back it up separately.`,
    )
  }
  lines.push(keyLine(keyFingerprint, withSecretKey))
  printLines(...lines)
}

function keyLine(fingerprint: string | null, isIncluded: boolean): string {
  const key = fingerprint === null ? '' : ` (fingerprint ${fingerprint.slice(0, 16)})`
  return isIncluded
    ? `The secret key${key} is included: keep the folder as safe as the key itself.`
    : `The secret key${key} is not included. The restored service needs it, so keep a copy of it elsewhere.`
}
