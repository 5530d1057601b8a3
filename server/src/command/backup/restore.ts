import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Config } from '../../config.ts'
import { archiveUrlOf } from '../../archive-url-of.ts'
import { openArchive } from '../../open-archive.ts'
import { OperatorError } from '../../errors.ts'
import { restoreArchive } from '../../outlet/backup/archive-copy.ts'
import { readWholeFile } from '../../outlet/backup/backup-file.ts'
import { KEY_PART } from '../../outlet/backup/backup-name.ts'
import { type BackupManifest, readBackupManifest } from '../../outlet/backup/manifest.ts'
import { checkBackup, restoreLedger } from '../../outlet/backup/restore-ledger.ts'
import { createLogger } from '../../platform/logger.ts'
import { archiveMarkerKey, type ObjectStore } from '../../platform/object-store/object-store.ts'
import { Database } from '../../platform/pg/database.ts'
import {
  fingerprintOf,
  parseSecretKey,
  readOrCreateSecretKey,
} from '../../platform/secret/secret-key.ts'
import type { Secret } from '../../platform/secret/secret.ts'
import { monotonicClock as clock } from '../../platform/time/clock.ts'
import { openCommandDataSource } from '../open-command-data-source.ts'
import { count } from '../output/format.ts'
import { verify } from '../verify/verify.ts'
import { explainBackupError } from './explain-error.ts'
import { printJson, printLines, printNotes } from '../output/print.ts'
import { ProgressLine } from '../output/progress-line.ts'

export type RestoreCommandOptions = { from: string; checkOnly?: boolean; json?: boolean }

const STEPS = { check: 'Checked bytes', load: 'Loaded files', archive: 'Archive files' }
const KEY_FILE = 'secret.key'
const KEY_BYTES_MAX = 4_096

/**
 * `annals restore`: loads a backup into an empty database and verifies it. Exits with code 1 if the backup is
 * damaged, if the database isn't empty, or if the restored ledger doesn't pass the checks of `annals verify`.
 */
export async function restore(config: Config, options: RestoreCommandOptions): Promise<void> {
  const startedAtMs = clock()
  const folder = resolve(options.from)
  const explain = (error: unknown): never => {
    throw explainBackupError(error, folder)
  }
  const manifest = await readBackupManifest(folder).catch(explain)
  if (manifest === null) {
    throw new OperatorError(
      `${folder} has no complete backup: it has no manifest.json. If a backup was interrupted, run it again.`,
    )
  }
  using progress = new ProgressLine()
  const onProgress = (step: keyof typeof STEPS, done: number, total: number) =>
    progress.show(STEPS[step], done, total)
  await checkBackup(folder, manifest, onProgress).catch(explain)
  const print = options.json ? printNotes : printLines
  if (options.checkOnly) {
    progress[Symbol.dispose]()
    printSummary(options, manifest, {
      folder,
      isVerified: null,
      seconds: (clock() - startedAtMs) / 1_000,
    })
    return
  }
  await load(config, { folder, manifest, onProgress }).catch(explain)
  progress[Symbol.dispose]()
  print(`Loaded ${count(manifest.events)} events. Verifying them.`)
  const isVerified = await verify(config, {}, print)
  printSummary(options, manifest, { folder, isVerified, seconds: (clock() - startedAtMs) / 1_000 })
}

type Loading = {
  folder: string
  manifest: BackupManifest
  onProgress: (step: keyof typeof STEPS, done: number, total: number) => void
}

async function load(config: Config, { folder, manifest, onProgress }: Loading): Promise<void> {
  const key = await findKey(config, folder, manifest)
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  // The restored database names its archive, so until then any storage is accepted.
  const archive = stack.use(openArchive(config, { readArchiveId: async () => null }))
  await refuseOtherStorage(config, archive, manifest)
  const dataSource = stack.use(await openCommandDataSource(config, { logger, mayCreate: true }))
  const { connection } = dataSource
  const database = stack.use(new Database({ connection, role: 'owner', connectionsMax: 1, logger }))
  const restoreObjects = async (): Promise<void> => {
    if (key?.isFromBackup && dataSource.isEmbedded) await keepKey(config, key.secretKey)
    const onFile = (done: number, total: number) => onProgress('archive', done, total)
    await restoreArchive(archive, folder, manifest, onFile)
  }
  await restoreLedger({ database, folder, manifest, restoreObjects, onProgress })
}

type FoundKey = { secretKey: Secret<Buffer>; isFromBackup: boolean }

/** The key that the restored service will use. Creates none: a new key couldn't decrypt the restored secrets. */
async function findKey(
  config: Config,
  folder: string,
  { keyFingerprint, files }: BackupManifest,
): Promise<FoundKey | null> {
  if (keyFingerprint === null) return null
  const configured = config.secretKey ?? config.secretKeyFile
  const isKept = config.databaseUrl === null && existsSync(join(config.dataDir, KEY_FILE))
  const present = configured ?? (isKept ? readOrCreateSecretKey(config.dataDir) : null)
  const copy = files.find(({ path }) => path.startsWith(`${KEY_PART}/`))
  const readCopy = async () =>
    copy && parseSecretKey(String(await readWholeFile(folder, copy, { bytesMax: KEY_BYTES_MAX })))
  const secretKey = present ?? (await readCopy())
  if (secretKey && fingerprintOf(secretKey).toString('hex') === keyFingerprint) {
    return { secretKey, isFromBackup: present === null }
  }
  const short = keyFingerprint.slice(0, 16)
  const problem = present ? 'This is not the secret key of the backup' : 'The secret key is missing'
  throw new OperatorError(
    `Nothing was restored. ${problem}: the backup needs the key with the fingerprint ${short}. Set ANNALS_SECRET_KEY or ANNALS_SECRET_KEY_FILE, or with the embedded engine copy ${KEY_FILE} to the new data folder.`,
  )
}

async function keepKey({ dataDir }: Config, secretKey: Secret<Buffer>): Promise<void> {
  const text = secretKey.reveal().toString('base64')
  const path = join(dataDir, KEY_FILE)
  await writeFile(path, text, { mode: 0o600, flag: 'wx', flush: true })
}

/** Without its archive, the restored ledger would lack events. */
async function refuseOtherStorage(
  config: Config,
  archive: ObjectStore,
  { archive: { kind, id } }: BackupManifest,
): Promise<void> {
  if (archiveUrlOf(config) === null) {
    if (kind === 'none' || (kind === 'external' && id === null)) return
    throw new OperatorError(
      'Nothing was restored: the backup has an archive, but no archive is configured. Set ANNALS_ARCHIVE_URL.',
    )
  }
  if (kind === 'copied' || id === null) return
  const marker = archiveMarkerKey(id)
  if ((await archive.stat(marker)) !== null) return
  throw new OperatorError(
    `Nothing was restored: the backup doesn't include its archive, and the configured one doesn't have the marker file ${marker}. Set ANNALS_ARCHIVE_URL to the archive of this ledger.`,
  )
}

function printSummary(
  { json = false }: RestoreCommandOptions,
  { createdAt, workspaces, events, archive, keyFingerprint }: BackupManifest,
  outcome: { folder: string; isVerified: boolean | null; seconds: number },
): void {
  const { folder, isVerified } = outcome
  if (json) {
    const seconds = Math.round(outcome.seconds * 1_000) / 1_000
    const counts = { workspaces, events, seconds, isVerified }
    const result = { folder, createdAt, ...counts, archive: archive.kind, keyFingerprint }
    printJson(result)
  }
  const text = `${count(events)} events of ${count(workspaces)} workspaces, as of ${createdAt}`
  if (isVerified === false) {
    throw new OperatorError(
      `The backup was loaded, but it doesn't pass verification. If events were signed after the backup was made (${createdAt}), their signed trees are longer than the restored chains, and newer workspaces are lost: restore a newer backup, or accept the loss with annals ledger-fork. See docs/backup.md.`,
    )
  }
  if (json) return
  if (isVerified === null) {
    printLines(`The backup is complete and undamaged: ${text}.`)
    return
  }
  printLines(`Restored and verified ${text}. Newer events are lost.`)
  if (archive.kind === 'copied') {
    printLines(
      'The state of the signer was restored too, unless the archive still had it. So this check may not detect that newer events were signed: compare with a witness, or with a checkpoint that was kept elsewhere.',
    )
  }
}
