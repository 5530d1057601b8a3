import { createHash } from 'node:crypto'
import { createReadStream, constants as fsConstants } from 'node:fs'
import {
  type FileHandle,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress, createZstdDecompress, type ZstdCompress } from 'node:zlib'
import { OperatorError } from '../../errors.ts'

/** A file of a backup. `path` is relative to its folder. */
export type BackupFile = { path: string; bytes: number; sha256: string }

/** The rows contain password hashes and encrypted secrets. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
/** Level 3 is PostgreSQL's default too. It compressed event rows to a third of their size. */
const LEVEL = 3
const READ_BYTES = 1_024 * 1_024
const DRAFT = '.tmp'

/** Writes a compressed file. It gets its final name when it is complete and on disk. */
export class BackupFileWriter implements AsyncDisposable {
  readonly #folder: string
  readonly #path: string
  readonly #file: FileHandle
  readonly #compressor: ZstdCompress
  readonly #hash = createHash('sha256')
  #pieces: Buffer[] = []
  #bytes = 0
  #isFinished = false

  private constructor(folder: string, path: string, file: FileHandle) {
    this.#folder = folder
    this.#path = path
    this.#file = file
    const params = { [constants.ZSTD_c_compressionLevel]: LEVEL }
    this.#compressor = createZstdCompress({ params })
    this.#compressor.on('data', (piece: Buffer) => this.#pieces.push(piece))
  }

  static async open(folder: string, path: string): Promise<BackupFileWriter> {
    const full = join(folder, path)
    await createFolders(dirname(full))
    return new BackupFileWriter(folder, path, await open(`${full}${DRAFT}`, 'w', FILE_MODE))
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
    await this.#file.sync()
    await this.#file.close()
    this.#isFinished = true
    await nameDraft(join(this.#folder, this.#path))
    return { path: this.#path, bytes: this.#bytes, sha256: this.#hash.digest('hex') }
  }

  async #flush(): Promise<void> {
    const pieces = this.#pieces
    this.#pieces = []
    for (const piece of pieces) {
      this.#hash.update(piece)
      this.#bytes += piece.length
      await this.#file.writeFile(piece)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#compressor.destroy()
    if (!this.#isFinished) await this.#file.close()
  }
}

/** Writes a small file as it is, atomically and durably. */
export async function writeSmallBackupFile(
  folder: string,
  path: string,
  bytes: Buffer,
): Promise<BackupFile> {
  const full = join(folder, path)
  await createFolders(dirname(full))
  {
    await using file = await open(`${full}${DRAFT}`, 'w', FILE_MODE)
    await file.writeFile(bytes)
    await file.sync()
  }
  await nameDraft(full)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { path, bytes: bytes.length, sha256 }
}

/** Copies a file of any size as it is. Returns null if it doesn't exist. */
export async function copyToBackup(
  source: string,
  folder: string,
  path: string,
): Promise<BackupFile | null> {
  const full = join(folder, path)
  await createFolders(dirname(full))
  const hash = createHash('sha256')
  let bytes = 0
  try {
    await using from = await open(source)
    await using file = await open(`${full}${DRAFT}`, 'w', FILE_MODE)
    for await (const chunk of from.createReadStream({ highWaterMark: READ_BYTES })) {
      hash.update(chunk)
      bytes += chunk.length
      await file.writeFile(chunk)
    }
    await file.sync()
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  await nameDraft(full)
  return { path, bytes, sha256: hash.digest('hex') }
}

/** The content of a compressed file. Throws after the last block if the file is not the one that was backed up. */
export async function* readBackupFile(
  folder: string,
  file: BackupFile,
): AsyncGenerator<Buffer, void, void> {
  const hash = createHash('sha256')
  const decompressor = createZstdDecompress({ chunkSize: READ_BYTES })
  const reading = pipeline(
    createReadStream(join(folder, file.path), { highWaterMark: READ_BYTES }),
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
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('ZSTD')) {
      throw damagedError(file, error)
    }
    throw isMissing(error) ? missingError(file) : error
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
  await checkSize(folder, file)
  const hash = createHash('sha256')
  const chunks = createReadStream(join(folder, file.path), { highWaterMark: READ_BYTES })
  for await (const chunk of chunks) {
    hash.update(chunk)
    onBytes(chunk.length)
  }
  if (hash.digest('hex') !== file.sha256) throw damagedError(file)
}

/** Checks only the size, without reading the file. */
export async function checkSize(folder: string, file: BackupFile): Promise<void> {
  const found = await stat(join(folder, file.path)).catch((error: unknown) => {
    throw isMissing(error) ? missingError(file) : error
  })
  if (found.size !== file.bytes) throw damagedError(file)
}

/** Deletes all files in these parts of the folder except those to keep. */
export async function removeOthers(
  folder: string,
  parts: readonly string[],
  keep: ReadonlySet<string>,
): Promise<void> {
  for (const part of parts) {
    const entries = await readdir(join(folder, part), {
      recursive: true,
      withFileTypes: true,
    }).catch((error: unknown) => {
      if (isMissing(error)) return []
      throw error
    })
    for (const entry of entries) {
      const path = relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/')
      if (entry.isFile() && !keep.has(path)) await rm(join(folder, path))
    }
  }
}

const MARKER = 'annals-backup'
/** The root of a disk has this folder. */
const LOST_AND_FOUND = 'lost+found'

/** A backup deletes files that it doesn't know, so it must never get a folder with files of others. */
export async function claimFolder(folder: string): Promise<void> {
  await createFolders(folder)
  const names = await readdir(folder)
  if (names.includes(MARKER)) return
  if (names.some((name) => name !== LOST_AND_FOUND)) {
    throw new OperatorError(
      `${folder} contains other files than a backup of Annals. Choose an empty or a new folder.`,
    )
  }
  await writeFile(join(folder, MARKER), 'A backup of Annals. Other files in it are deleted.\n', {
    mode: FILE_MODE,
  })
}

async function createFolders(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: FOLDER_MODE })
}

/** A renamed file is durable only after its folder is synced. */
async function nameDraft(full: string): Promise<void> {
  await rename(`${full}${DRAFT}`, full)
  await using folder = await open(dirname(full), fsConstants.O_RDONLY | fsConstants.O_DIRECTORY)
  await folder.sync()
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

function damagedError({ path }: BackupFile, cause?: unknown): OperatorError {
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
