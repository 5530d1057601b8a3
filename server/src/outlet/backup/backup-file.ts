import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open as openFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import {
  constants as zlib,
  createZstdCompress,
  createZstdDecompress,
  type ZstdCompress,
} from 'node:zlib'
import { type Static, Type } from 'typebox'
import { OperatorError } from '../../errors.ts'
import { acquireFileLock } from '../../platform/file-lock.ts'
import {
  BackupDraft,
  FILE_MODE,
  FOLDER_MODE,
  isMissing,
  openInBackup,
  refuseForeignLock,
  removeInBackup,
} from './backup-folder.ts'
import { isBackupName, isDraftName } from './backup-name.ts'

export const ExactCount = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
export const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' })

/** A file of a backup. `path` is relative to its folder. */
export const BackupFileSchema = Type.Object({
  path: Type.Refine(Type.String({ maxLength: 255 }), isBackupName),
  bytes: ExactCount,
  sha256: Sha256,
})
export type BackupFile = Static<typeof BackupFileSchema>

/** Level 3 is PostgreSQL's default too. It compressed event rows to a third of their size. */
const LEVEL = 3
const READ_BYTES = 1_024 * 1_024

/** Writes a compressed file. It gets its final name when it is complete and on disk. */
export class BackupFileWriter implements AsyncDisposable {
  readonly #path: string
  readonly #draft: BackupDraft
  readonly #compressor: ZstdCompress
  readonly #hash = createHash('sha256')
  #pieces: Buffer[] = []
  #bytes = 0

  private constructor(path: string, draft: BackupDraft) {
    this.#path = path
    this.#draft = draft
    const params = { [zlib.ZSTD_c_compressionLevel]: LEVEL }
    this.#compressor = createZstdCompress({ params })
    this.#compressor.on('data', (piece: Buffer) => this.#pieces.push(piece))
  }

  static async open(folder: string, path: string): Promise<BackupFileWriter> {
    return new BackupFileWriter(path, await BackupDraft.create(folder, path))
  }

  /** Returns when the block is compressed, so the caller never has more than one block in memory. */
  async write(block: Buffer): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#compressor.write(block, (error) => (error ? reject(error) : resolve()))
    })
    await this.#flush()
  }

  async finish(): Promise<BackupFile> {
    const ended = new Promise((resolve, reject) =>
      this.#compressor.once('end', resolve).once('error', reject),
    )
    this.#compressor.end()
    await ended
    await this.#flush()
    await this.#draft.finish()
    await this.#draft[Symbol.asyncDispose]()
    return { path: this.#path, bytes: this.#bytes, sha256: this.#hash.digest('hex') }
  }

  async #flush(): Promise<void> {
    const pieces = this.#pieces
    this.#pieces = []
    for (const piece of pieces) {
      this.#hash.update(piece)
      this.#bytes += piece.length
      await this.#draft.file.writeFile(piece)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#compressor.destroy()
    await this.#draft[Symbol.asyncDispose]()
  }
}

/** Writes a small file as it is, atomically and durably. */
export async function writeSmallBackupFile(
  folder: string,
  path: string,
  bytes: Buffer,
): Promise<BackupFile> {
  await using draft = await BackupDraft.create(folder, path)
  await draft.file.writeFile(bytes)
  await draft.finish()
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { path, bytes: bytes.length, sha256 }
}

/** Copies a file of any size as it is. Returns null if it doesn't exist. */
export async function copyToBackup(
  source: string,
  folder: string,
  path: string,
): Promise<BackupFile | null> {
  const hash = createHash('sha256')
  let bytes = 0
  await using from = await openSource(source)
  if (from === null) return null
  await using draft = await BackupDraft.create(folder, path)
  for await (const chunk of from.createReadStream({ highWaterMark: READ_BYTES })) {
    hash.update(chunk)
    bytes += chunk.length
    await draft.file.writeFile(chunk)
  }
  await draft.finish()
  return { path, bytes, sha256: hash.digest('hex') }
}

/** Null if it is missing. A pipe in the archive would block the backup. */
async function openSource(path: string): Promise<FileHandle | null> {
  try {
    const file = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK)
    if ((await file.stat()).isFile()) return file
    await file.close()
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  throw new OperatorError(`${path} is not a regular file, so the backup is incomplete.`)
}

/** The content of a compressed file. Throws after the last block if the file is not the one that was backed up. */
export async function* readBackupFile(
  folder: string,
  file: BackupFile,
): AsyncGenerator<Buffer, void, void> {
  const hash = createHash('sha256')
  await using opened = await open(folder, file)
  const decompressor = createZstdDecompress({ chunkSize: READ_BYTES })
  const reading = pipeline(
    opened.createReadStream({ highWaterMark: READ_BYTES, autoClose: false }),
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        yield chunk
      }
    },
    decompressor,
  )
  // The iteration below throws the same error.
  reading.catch(() => {})
  try {
    for await (const block of decompressor) yield block
    await reading
  } catch (error) {
    // Such as ZSTD_error_prefix_unknown or, if it ends too early, Z_BUF_ERROR.
    const isZstd = error instanceof Error && 'code' in error && String(error.code).startsWith('Z')
    throw isZstd ? damagedError(file, error) : error
  } finally {
    decompressor.destroy()
  }
  if (hash.digest('hex') !== file.sha256) throw damagedError(file)
}

/** Throws an OperatorError unless the file is exactly the one that was backed up. */
export async function checkBackupFile(
  folder: string,
  file: BackupFile,
  onBytes: (bytes: number) => void = () => {},
): Promise<void> {
  await using opened = await openSized(folder, file)
  const hash = createHash('sha256')
  const options = { highWaterMark: READ_BYTES, autoClose: false }
  for await (const chunk of opened.createReadStream(options)) {
    hash.update(chunk)
    onBytes(chunk.length)
  }
  if (hash.digest('hex') !== file.sha256) throw damagedError(file)
}

/** Checks only the size, without reading the file. */
export async function checkSize(folder: string, file: BackupFile): Promise<void> {
  await using _opened = await openSized(folder, file)
}

/** Reads a file that was written as it is. */
export async function readWholeFile(
  folder: string,
  file: BackupFile,
  { bytesMax }: { bytesMax: number },
): Promise<Buffer> {
  if (file.bytes > bytesMax) throw damagedError(file)
  await using opened = await openSized(folder, file)
  return await opened.readFile()
}

async function openSized(folder: string, file: BackupFile): Promise<FileHandle> {
  const opened = await open(folder, file)
  const { size } = await opened.stat()
  if (size === file.bytes) return opened
  await opened.close()
  throw damagedError(file)
}

async function open(folder: string, file: BackupFile): Promise<FileHandle> {
  return await openInBackup(folder, file.path).catch((error: unknown) => {
    throw isMissing(error) ? missingError(file) : error
  })
}

/** Deletes the files that earlier backups wrote to these parts of the folder, except those to keep. */
export async function removeOthers(
  folder: string,
  parts: readonly string[],
  keep: ReadonlySet<string>,
): Promise<void> {
  const isOld = (path: string) => isDraftName(path) || (isBackupName(path) && !keep.has(path))
  for (const part of ['.', ...parts]) await removeInBackup(folder, part, isOld)
}

const MARKER = 'annals-backup'
const LOCK = 'lock'
/** The root of a disk has this folder. */
const LOST_AND_FOUND = 'lost+found'

/** A backup deletes files of earlier ones, so it must never get a folder with files of others. */
export async function claimFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE })
  const names = await readdir(folder)
  if (names.includes(MARKER)) return
  if (names.some((name) => name !== LOST_AND_FOUND)) {
    throw new OperatorError(
      `${folder} contains other files than a backup of Annals. Choose an empty or a new folder.`,
    )
  }
  const text = 'A backup of Annals, which deletes the files here that it no longer needs.\n'
  await writeFile(join(folder, MARKER), text, { mode: FILE_MODE, flag: 'wx' })
}

/** Null if another backup to the folder is running. */
export async function lockBackup(folder: string): Promise<Disposable | null> {
  await refuseForeignLock(folder, LOCK)
  return await acquireFileLock(join(folder, LOCK), { waitMsMax: 0 })
}

export function damagedError({ path }: BackupFile, cause?: unknown): OperatorError {
  return new OperatorError(
    `The file ${path} of the backup is damaged: it doesn't match its SHA-256. Restore another backup, or back up to a new folder.`,
    { cause },
  )
}

function missingError({ path }: BackupFile): OperatorError {
  return new OperatorError(
    `The file ${path} of the backup is missing. Restore another backup, or back up to a new folder.`,
  )
}
