import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { OperatorError } from '../../errors.ts'
import { type BackupFile, isMissing, writeSmallBackupFile } from './backup-file.ts'
import { isHashedJson, writeHashedJson } from './hashed-json.ts'
import { parseJson } from '../../platform/json/parse-json.ts'

/** A table in a backup: its columns in the order of the rows, and the paths of its files. */
export type BackupTable = { name: string; columns: string[]; rows: number; paths: string[] }

/**
 * What a backup consists of. It is written last, so a folder with a manifest has a complete backup, even if a later
 * one into the same folder was interrupted.
 */
export type BackupManifest = {
  version: number
  createdAt: string
  /** The migrations of the database. */
  migrations: { version: number; name: string; checksum: string }[]
  /** The months that have a partition, as `YYYY-MM`. */
  months: string[]
  /** Identifies the secret key that the restored service needs. Null if no service used the database yet. */
  keyFingerprint: string | null
  archive: {
    /** `copied`: it is in the backup. `external`: it isn't. `none`: there is none. */
    kind: 'copied' | 'external' | 'none'
    id: string | null
  }
  workspaces: number
  /** All events, including archived ones. */
  events: number
  archivedEvents: number
  tables: BackupTable[]
  files: BackupFile[]
}

const VERSION = 1
const MANIFEST = 'manifest.json'

/** Replaces the manifest atomically. */
export async function writeBackupManifest(
  folder: string,
  manifest: Omit<BackupManifest, 'version'>,
): Promise<void> {
  await writeSmallBackupFile(folder, MANIFEST, writeHashedJson({ version: VERSION, ...manifest }))
}

/** Null if the folder has no complete backup. Throws an OperatorError if the manifest is damaged. */
export async function readBackupManifest(folder: string): Promise<BackupManifest | null> {
  const text = await readFile(join(folder, MANIFEST), 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return null
    throw error
  })
  if (text === null) return null
  if (!isHashedJson(text)) {
    throw new OperatorError(
      `${MANIFEST} in ${folder} is damaged: it doesn't match its SHA-256. Use another backup.`,
    )
  }
  const manifest: BackupManifest = parseJson(text)
  if (manifest.version !== VERSION) {
    throw new OperatorError(
      `The backup in ${folder} has a format that this release can't read. Use the release that created it.`,
    )
  }
  return manifest
}
