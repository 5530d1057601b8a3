import { type Static, Type } from 'typebox'
import { OperatorError } from '../../errors.ts'
import { BackupFileSchema, ExactCount, Sha256, writeSmallBackupFile } from './backup-file.ts'
import { readInBackup } from './backup-folder.ts'
import { MANIFEST } from './backup-name.ts'
import { createChecker, readHashedJson, writeHashedJson } from './hashed-json.ts'

/** Bounds the memory for a file that isn't a manifest. That of a large backup has some megabytes. */
export const LIST_BYTES_MAX = 256 * 1_024 * 1_024
const Name = Type.String({ minLength: 1, maxLength: 63 })
const Paths = Type.Array(Type.String({ maxLength: 255 }))

const TableSchema = Type.Object({
  name: Name,
  columns: Type.Array(Name),
  rows: ExactCount,
  paths: Paths,
})

const ManifestSchema = Type.Object({
  version: ExactCount,
  createdAt: Type.String({ pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$` }),
  /** The migrations of the database. */
  migrations: Type.Array(
    Type.Object({ version: ExactCount, name: Type.String(), checksum: Type.String() }),
  ),
  /** The months that have a partition, as `YYYY-MM`. */
  months: Type.Array(Type.String({ pattern: String.raw`^\d{4}-(?:0[1-9]|1[0-2])$` })),
  /** Identifies the secret key that the restored service needs. Null if no service used the database yet. */
  keyFingerprint: Type.Union([Sha256, Type.Null()]),
  archive: Type.Object({
    /** `copied`: it is in the backup. `external`: it isn't. `none`: there is none. */
    kind: Type.Enum(['copied', 'external', 'none']),
    id: Type.Union([Type.String({ pattern: '^[0-9a-f]{32}$' }), Type.Null()]),
  }),
  workspaces: ExactCount,
  /** All events, including archived ones. */
  events: ExactCount,
  archivedEvents: ExactCount,
  tables: Type.Array(TableSchema),
  files: Type.Array(BackupFileSchema),
})

/** A table in a backup: its columns in the order of the rows, and the paths of its files. */
export type BackupTable = Static<typeof TableSchema>

/**
 * What a backup consists of. It is written last, so a folder with a manifest has a complete backup, even if a later
 * one into the same folder was interrupted.
 */
export type BackupManifest = Static<typeof ManifestSchema>

const VERSION = 1
const checkManifest = createChecker(ManifestSchema)

/** Replaces the manifest atomically. */
export async function writeBackupManifest(
  folder: string,
  manifest: Omit<BackupManifest, 'version'>,
): Promise<void> {
  await writeSmallBackupFile(folder, MANIFEST, writeHashedJson({ version: VERSION, ...manifest }))
}

/** Null if the folder has no complete backup. Throws an OperatorError if the manifest is damaged or not ours. */
export async function readBackupManifest(folder: string): Promise<BackupManifest | null> {
  const bytes = await readInBackup(folder, MANIFEST, { bytesMax: LIST_BYTES_MAX })
  if (bytes === 'missing') return null
  const read = bytes === 'too large' ? null : readHashedJson(bytes.toString())
  if (read === null) {
    throw new OperatorError(
      `${MANIFEST} in ${folder} is damaged: it doesn't match its SHA-256. Use another backup.`,
    )
  }
  if (!('version' in read) || read.version !== VERSION) {
    throw new OperatorError(
      `The backup in ${folder} has a format that this release can't read. Use the release that created it.`,
    )
  }
  const checked = checkManifest(read)
  const wrongPath = 'value' in checked ? wrongPathIn(checked.value) : checked.wrongPath
  if ('value' in checked && wrongPath === null) return checked.value
  throw new OperatorError(
    `${MANIFEST} in ${folder} was changed: ${wrongPath || 'its content'} is not what a backup writes. Use another backup.`,
  )
}

/** What the parts of a manifest say about each other. */
function wrongPathIn({ files, tables }: BackupManifest): string | null {
  const paths = new Set(files.map(({ path }) => path))
  if (paths.size < files.length) return '/files'
  if (new Set(tables.map(({ name }) => name)).size < tables.length) return '/tables'
  const wrong = tables.findIndex((table) => table.paths.some((path) => !paths.has(path)))
  return wrong < 0 ? null : `/tables/${wrong}/paths`
}
