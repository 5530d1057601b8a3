import { constants, existsSync } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, rename, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { OperatorError } from '../../errors.ts'
import { randomHex } from '../../platform/id.ts'

/**
 * Linux resolves paths below this from a folder that is open, so a link that replaces the folder meanwhile isn't
 * followed. Other systems have no such path: there, links are only refused when the folder is opened.
 */
export const OPEN_FOLDERS = '/proc/self/fd'
const HAS_OPEN_FOLDERS = existsSync(OPEN_FOLDERS)

/** The rows contain password hashes and encrypted secrets. */
export const FILE_MODE = 0o600
export const FOLDER_MODE = 0o700
const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY
/** `O_NONBLOCK` keeps `open` from waiting for the writer of a pipe. */
const FILE_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * The folder of a backup, or one in it. The former can be a link, which is up to the operator. What is in it can be
 * from anyone with access to the backup's disk, so links in it are refused.
 */
class OpenFolder implements AsyncDisposable {
  readonly #handle: FileHandle
  readonly #path: string

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle
    this.#path = path
  }

  /** `path` is relative to the backup's folder. A missing folder is ENOENT, unless it may be created. */
  static async open(root: string, path: string, { mayCreate = false } = {}): Promise<OpenFolder> {
    let folder = new OpenFolder(await open(root, FOLDER_FLAGS), root)
    for (const name of path === '.' ? [] : path.split('/')) {
      const parent = folder
      try {
        folder = await parent.#enter(name, mayCreate)
      } catch (error) {
        if (!isCode(error, 'ENOTDIR', 'ELOOP')) throw error
        const inner = join(parent.#path, name).slice(root.length + 1)
        throw refusal(`${inner} in ${root} is not a folder.`, error)
      } finally {
        await parent[Symbol.asyncDispose]()
      }
    }
    return folder
  }

  async #enter(name: string, mayCreate: boolean): Promise<OpenFolder> {
    if (mayCreate) {
      await mkdir(this.at(name), { mode: FOLDER_MODE }).catch((error: unknown) => {
        if (!isCode(error, 'EEXIST')) throw error
      })
    }
    const handle = await open(this.at(name), FOLDER_FLAGS | constants.O_NOFOLLOW)
    return new OpenFolder(handle, join(this.#path, name))
  }

  at(name: string): string {
    return HAS_OPEN_FOLDERS ? `${OPEN_FOLDERS}/${this.#handle.fd}/${name}` : join(this.#path, name)
  }

  async sync(): Promise<void> {
    await this.#handle.sync()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }
}

/** Opens a file of a backup for reading. Throws an OperatorError if it isn't a regular file. */
export async function openInBackup(root: string, path: string): Promise<FileHandle> {
  await using folder = await OpenFolder.open(root, dirname(path))
  const refuse = (cause?: unknown) => refusal(`${path} in ${root} is not a regular file.`, cause)
  const file = await open(folder.at(basename(path)), FILE_FLAGS).catch((error: unknown) => {
    // A link, or a socket.
    throw isCode(error, 'ELOOP', 'ENXIO') ? refuse(error) : error
  })
  const isFile = await file.stat().then((found) => found.isFile())
  if (isFile) return file
  await file.close()
  throw refuse()
}

/** Reads a file of a backup at once. Larger ones are not read. */
export async function readInBackup(
  root: string,
  path: string,
  { bytesMax }: { bytesMax: number },
): Promise<Buffer | 'missing' | 'too large'> {
  try {
    await using file = await openInBackup(root, path)
    const { size } = await file.stat()
    return size > bytesMax ? 'too large' : await file.readFile()
  } catch (error) {
    if (isMissing(error)) return 'missing'
    throw error
  }
}

/** A new file that gets its name when it is complete and on disk. Until then, its name can't be predicted. */
export class BackupDraft implements AsyncDisposable {
  readonly file: FileHandle
  readonly #folder: OpenFolder
  readonly #name: string
  readonly #draft: string
  #isNamed = false

  private constructor(file: FileHandle, folder: OpenFolder, name: string, draft: string) {
    this.file = file
    this.#folder = folder
    this.#name = name
    this.#draft = draft
  }

  static async create(root: string, path: string): Promise<BackupDraft> {
    await using stack = new AsyncDisposableStack()
    const folder = stack.use(await OpenFolder.open(root, dirname(path), { mayCreate: true }))
    const draft = `${basename(path)}.${randomHex(8)}.tmp`
    const file = await open(folder.at(draft), 'wx', FILE_MODE)
    stack.move()
    return new BackupDraft(file, folder, basename(path), draft)
  }

  /** A renamed file is durable only after its folder is synced. */
  async finish(): Promise<void> {
    await this.file.sync()
    await rename(this.#folder.at(this.#draft), this.#folder.at(this.#name))
    this.#isNamed = true
    await this.#folder.sync()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using _folder = this.#folder
    await using _file = this.file
    // The next backup deletes what is left.
    if (!this.#isNamed) await unlink(this.#folder.at(this.#draft)).catch(() => {})
  }
}

/** Folders in an archive: `exports`, a company and a job. */
const DEPTH_MAX = 4

/** Deletes the files of a part of a backup that `isOld` selects. Other entries stay. */
export async function removeInBackup(
  root: string,
  part: string,
  isOld: (path: string) => boolean,
): Promise<void> {
  const folders = [part]
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    await using folder = await openUnlessMissing(root, path)
    if (folder === null) continue
    for (const entry of await readdir(folder.at('.'), { withFileTypes: true })) {
      const inner = join(path, entry.name)
      const isFolder = entry.isDirectory()
      if (!isFolder && isOld(inner)) await unlink(folder.at(entry.name))
      if (isFolder && path !== '.' && inner.split('/').length <= DEPTH_MAX) folders.push(inner)
    }
  }
}

async function openUnlessMissing(root: string, path: string): Promise<OpenFolder | null> {
  return await OpenFolder.open(root, path).catch((error: unknown) => {
    if (isMissing(error)) return null
    throw error
  })
}

/** The names in a folder of a backup, or none if it is missing. */
export async function listInBackup(root: string, path: string): Promise<string[]> {
  await using folder = await openUnlessMissing(root, path)
  return folder === null ? [] : await readdir(folder.at('.'))
}

/** SQLite would follow a link to a lock, and apply a journal to a database. */
export async function refuseForeignLock(root: string, name: string): Promise<void> {
  const found = await lstat(join(root, name)).catch((error: unknown) => {
    if (isMissing(error)) return null
    throw error
  })
  if (found === null) return
  if (!found.isFile()) throw refusal(`${name} in ${root} is not a regular file.`)
  if (found.size > 0) throw refusal(`${name} in ${root} is not empty.`)
}

function refusal(problem: string, cause?: unknown): OperatorError {
  return new OperatorError(
    `${problem} Annals didn't write it, so find out who can write to the backup, and use another one.`,
    { cause },
  )
}

export function isMissing(error: unknown): boolean {
  return isCode(error, 'ENOENT')
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
