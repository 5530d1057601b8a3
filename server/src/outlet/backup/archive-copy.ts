import { readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { OperatorError } from '../../errors.ts'
import { parseJson } from '../../platform/json/parse-json.ts'
import { isObjectKey, isSignerKey } from '../../platform/object-store/object-key.ts'
import {
  archiveMarkerKey,
  OBJECT_BYTES_MAX,
  type ObjectStore,
  REPLACED_BYTES_MAX,
} from '../../platform/object-store/object-store.ts'
import {
  type BackupFile,
  BackupFileWriter,
  checkBackupFile,
  copyToBackup,
  damagedError,
  readBackupFile,
  readWholeFile,
} from './backup-file.ts'
import { isMissing } from './backup-folder.ts'
import { ARCHIVE_PART, SIGNER_PART } from './backup-name.ts'
import type { BackupManifest } from './manifest.ts'
import type { CatalogedFile } from './snapshot-store.ts'

/** An object of the signer. These objects are small and change, so a backup has one file with all of them. */
export type SignerObject = { key: string; bytes: Buffer }

/** The files of scheduled exports. */
const EXPORTS = 'exports'

type ArchiveBackup = {
  /** The folder of the archive. */
  source: string
  folder: string
  catalog: readonly CatalogedFile[]
  archiveId: string | null
  kept: ReadonlyMap<string, BackupFile>
  onFile: (done: number, total: number) => void
}

/** Copies the objects of an archive that never change, unless the last backup has them. */
export async function backUpArchive(backup: ArchiveBackup): Promise<BackupFile[]> {
  const { source, catalog, archiveId, onFile } = backup
  const files: BackupFile[] = []
  const others = await listExports(source)
  const total = catalog.length + others.length
  if (archiveId !== null) {
    const marker = await backUpObject(backup, archiveMarkerKey(archiveId), null)
    if (marker === null) throw incompleteError(archiveMarkerKey(archiveId))
    files.push(marker)
  }
  for (const { objectKey, bytes, sha256 } of catalog) {
    onFile(files.length, total)
    const file = await backUpObject(backup, objectKey, { bytes, sha256 })
    if (file === null || file.sha256 !== sha256) throw incompleteError(objectKey)
    files.push(file)
  }
  for (const key of others) {
    // Annals deletes old ones, so a file may be gone by now.
    const file = await backUpObject(backup, key, null)
    if (file !== null) files.push(file)
  }
  return files
}

function incompleteError(key: string): OperatorError {
  return new OperatorError(
    `The object ${key} in the archive is missing or damaged, so the backup is incomplete. Repair the archive, or back up without it (--without-archive).`,
  )
}

/** An interrupted backup may have copied it already. */
async function backUpObject(
  { source, folder, kept }: ArchiveBackup,
  key: string,
  expected: Omit<BackupFile, 'path'> | null,
): Promise<BackupFile | null> {
  const path = `${ARCHIVE_PART}/${key}`
  const earlier = kept.get(path) ?? (expected && { path, ...expected })
  if (earlier && (!expected || earlier.sha256 === expected.sha256)) {
    const isCopied = await checkBackupFile(folder, earlier).then(
      () => true,
      () => false,
    )
    if (isCopied) return earlier
  }
  return await copyToBackup(join(source, key), folder, path)
}

async function listExports(source: string): Promise<string[]> {
  const options = { recursive: true, withFileTypes: true } as const
  const entries = await readdir(join(source, EXPORTS), options).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  return (
    entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(source, join(entry.parentPath, entry.name)).split(sep).join('/'))
      // Others may have put something there.
      .filter(isObjectKey)
  )
}

/** Writes the objects of the signer to one file, one line of JSON each. */
export async function backUpSigner(
  folder: string,
  name: string,
  objects: AsyncIterable<SignerObject>,
): Promise<BackupFile> {
  await using writer = await BackupFileWriter.open(folder, `${SIGNER_PART}/${name}.zst`)
  for await (const { key, bytes } of objects) {
    const line = JSON.stringify({ key, bytes: bytes.toString('base64') })
    await writer.write(Buffer.from(`${line}\n`))
  }
  return await writer.finish()
}

/**
 * Puts the copied objects into an archive. It never replaces an object: if the archive still exists, what was signed
 * there can be newer than the backup, and must stay.
 */
export async function restoreArchive(
  archive: ObjectStore,
  folder: string,
  { files }: Pick<BackupManifest, 'files'>,
  onFile: (done: number, total: number) => void,
): Promise<void> {
  const copied = files.filter(({ path }) => path.startsWith(`${ARCHIVE_PART}/`))
  for (const [nth, file] of copied.entries()) {
    onFile(nth, copied.length)
    const key = file.path.slice(ARCHIVE_PART.length + 1)
    const found = await archive.stat(key)
    if (found === null) {
      await archive.put(key, await readWholeFile(folder, file, { bytesMax: OBJECT_BYTES_MAX }))
    } else if (found.bytes !== file.bytes) {
      throw new OperatorError(
        `The archive already has the object ${key}, but with other content. Nothing was restored. Set ANNALS_ARCHIVE_URL to the archive of this ledger, or to a new one.`,
      )
    }
  }
  for (const file of files.filter(({ path }) => path.startsWith(`${SIGNER_PART}/`))) {
    for await (const { key, bytes } of readSigner(folder, file)) {
      if ((await archive.stat(key)) === null) await archive.put(key, bytes)
    }
  }
}

/** A line with the largest object. */
const SIGNER_LINE_CHARS_MAX = 2 * REPLACED_BYTES_MAX

async function* readSigner(
  folder: string,
  file: BackupFile,
): AsyncGenerator<SignerObject, void, void> {
  let rest = ''
  for await (const block of readBackupFile(folder, file)) {
    const lines = (rest + block.toString('latin1')).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > SIGNER_LINE_CHARS_MAX) throw damagedError(file)
    for (const line of lines) {
      const object = parseSignerLine(line)
      if (object === null) throw damagedError(file)
      yield object
    }
  }
}

/** Null if the line is not one that `backUpSigner` writes. */
function parseSignerLine(line: string): SignerObject | null {
  try {
    const { key, bytes } = parseJson(line)
    if (typeof key !== 'string' || !isSignerKey(key) || typeof bytes !== 'string') return null
    return { key, bytes: Buffer.from(bytes, 'base64') }
  } catch {
    return null
  }
}
