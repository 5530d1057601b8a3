import { hash } from 'node:crypto'
import { closeSync, constants, fchownSync, openSync } from 'node:fs'
import {
  type FileHandle,
  lchown,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  unlink,
} from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { BoundedOperations } from './bounded-operations.ts'
import { untilAborted, withDeadline } from '../time/deadline.ts'
import { acquireFileLock } from '../file-lock.ts'
import { randomHex } from '../id.ts'
import {
  type ListedKeys,
  type ObjectState,
  type ObjectStore,
  REPLACED_BYTES_MAX,
  type TaggedObject,
} from './object-store.ts'
import { StorageError } from './storage-error.ts'

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const OPENING_MS_MAX = 10_000
/** Deadlines for reading or writing a whole object, for any other call, and for the final cleanup. */
const WHOLE_MS_MAX = 120_000
const PART_MS_MAX = 30_000
const CLOSE_MS_MAX = 2_000
/**
 * How many of Node's threads for files, host names, compression and passwords this store may use:
 * `bin/annals` sets 16, and Node's default is 4. A file system that hangs, such as a network mount, blocks
 * a thread permanently.
 */
const THREADS_MAX = 2
const ROOT_ID = 0
/** Next to the folders of the workspaces, whose names are ids. */
const DRAFTS = '.drafts'

/** One per process, like the threads: all stores share it, including one that is reopened. */
const operations = new BoundedOperations({
  runningMax: THREADS_MAX,
  late: () => new StorageError('The archive folder does not respond. Check its disk or mount.'),
})

/**
 * Stores objects as files in a folder, which several processes may use at the same time.
 *
 * The first write creates the folder. Reading never does: a disk that isn't mounted must not look like an
 * archive without objects.
 *
 * An object is written as a draft and renamed to its key, so that a crash leaves a draft and never half an
 * object. Each store that writes has its own locked folder for drafts, and the next store that writes
 * removes those whose lock is free. Drafts next to their objects would require a search of the whole
 * archive, and an owner identified by a process id, which can be our own after a container restarts.
 *
 * What root creates belongs to the owner of the folder that it is in. Otherwise a command that an operator runs
 * as root would leave files that the service, as another user, can't read.
 */
export function openFolderStore(
  path: string,
  { objectBytesMax }: { objectBytesMax: number },
): ObjectStore {
  return new FolderStore({ root: resolve(path), objectBytesMax })
}

type Drafts = { path: string; lock: Disposable }

async function openDrafts(root: string): Promise<Drafts> {
  await createFolder(join(root, DRAFTS))
  using _opening = await lockOpening(root)
  const path = join(root, DRAFTS, randomHex(8))
  await createFolder(path)
  await createLockFile(join(path, 'lock'))
  const lock = await acquireFileLock(join(path, 'lock'), { waitMsMax: 0 })
  if (lock === null) throw new StorageError(`${path} is locked by another program.`)
  await removeDeadDrafts(root, path)
  return { path, lock }
}

class FolderStore implements ObjectStore {
  readonly #root: string
  readonly #objectBytesMax: number
  /** Null until the first write. */
  #opening: Promise<Drafts> | null = null
  #isClosed = false
  #drafted = 0

  constructor({ root, objectBytesMax }: { root: string; objectBytesMax: number }) {
    this.#root = root
    this.#objectBytesMax = objectBytesMax
  }

  async put(key: string, bytes: Buffer, signal?: AbortSignal): Promise<void> {
    const limits = { timeoutMs: WHOLE_MS_MAX, signal }
    await this.#write(limits, async (write) => await write(key, bytes))
  }

  /** Compares and writes under a lock, which all processes that use the folder share. */
  async replace(
    key: string,
    { bytes, tag }: { bytes: Buffer; tag: string | null },
    signal?: AbortSignal,
  ): Promise<string | null> {
    const limits = { timeoutMs: PART_MS_MAX, signal }
    return await this.#write(limits, async (write) => {
      using _lock = await lockReplacing(this.#root)
      if ((await this.#readTag(key)) !== tag) return null
      await write(key, bytes)
      return tagOf(bytes)
    })
  }

  /** Runs a write with its deadline. After the deadline, nothing appears in the folder any more. */
  async #write<T>(
    limits: { timeoutMs: number; signal: AbortSignal | undefined },
    run: (write: (key: string, bytes: Buffer) => Promise<void>) => Promise<T>,
  ): Promise<T> {
    const drafts = await this.#openDrafts(limits.signal)
    this.#drafted += 1
    const draft = join(drafts.path, String(this.#drafted))
    let isGivenUp = false
    const write = async (key: string, bytes: Buffer): Promise<void> => {
      const path = join(this.#root, key)
      await writeDurably(draft, bytes, await ownerIn(drafts.path))
      // The caller already got an error, so the object must not appear later.
      if (isGivenUp) throw new StorageError('The write was canceled.')
      await createFolder(dirname(path))
      await rename(draft, path)
      // Sync every parent folder: another writer may have created one and not flushed it yet.
      for (let folder = dirname(path); ; folder = dirname(folder)) {
        await syncFolder(folder)
        if (folder === this.#root) break
      }
    }
    const runAndClean = async (): Promise<T> => {
      try {
        return await run(write)
      } catch (error) {
        // Report the first error. The next opening removes leftover drafts.
        await rm(draft, { force: true }).catch(() => {})
        throw explainFileError(this.#root, error)
      }
    }
    try {
      return await operations.run(runAndClean, limits)
    } catch (error) {
      isGivenUp = true
      throw error
    }
  }

  async #openDrafts(signal: AbortSignal | undefined): Promise<Drafts> {
    this.#opening ??= this.#startOpening()
    return await untilAborted(this.#opening, signal ?? null)
  }

  async #startOpening(): Promise<Drafts> {
    let isGivenUp = false
    const open = async () => {
      const drafts = await openDrafts(this.#root)
      if (isGivenUp || this.#isClosed) await this.#closeDrafts(drafts)
      return drafts
    }
    try {
      return await operations.run(open, { timeoutMs: OPENING_MS_MAX + CLOSE_MS_MAX })
    } catch (error) {
      isGivenUp = true
      // The next write tries again.
      this.#opening = null
      throw explainFileError(this.#root, error)
    }
  }

  async read(key: string, signal?: AbortSignal): Promise<Buffer | null> {
    const read = async () => {
      await using file = await this.#open(key)
      const { size } = await file.stat()
      if (size > this.#objectBytesMax) {
        throw new StorageError(
          `The archived object ${key} has ${size} bytes, more than any segment can have.`,
        )
      }
      return await file.readFile()
    }
    return await this.#unlessMissing(read, { timeoutMs: WHOLE_MS_MAX, signal })
  }

  async readTagged(key: string, signal?: AbortSignal): Promise<TaggedObject | null> {
    const limits = { timeoutMs: PART_MS_MAX, signal }
    const bytes = await this.#unlessMissing(async () => await this.#readSmall(key), limits)
    return bytes && { bytes, tag: tagOf(bytes) }
  }

  /** Null if the object doesn't exist. No tag equals that of an object that is too large. */
  async #readTag(key: string): Promise<string | null> {
    try {
      const bytes = await this.#readSmall(key).catch(nullIfMissing)
      return bytes && tagOf(bytes)
    } catch (error) {
      if (error instanceof StorageError && error.isTooLarge) return 'too large'
      throw error
    }
  }

  async #readSmall(key: string): Promise<Buffer> {
    await using file = await this.#open(key)
    // One byte more shows that the object is too large.
    const bytes = await readPart(file, 0, REPLACED_BYTES_MAX + 1)
    if (bytes.length <= REPLACED_BYTES_MAX) return bytes
    throw new StorageError(
      `The archived object ${key} is larger than ${REPLACED_BYTES_MAX} bytes.`,
      { isTooLarge: true },
    )
  }

  async readRange(
    key: string,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): Promise<Buffer | null> {
    const read = async () => {
      await using file = await this.#open(key)
      return await readPart(file, start, end)
    }
    return await this.#unlessMissing(read, { timeoutMs: PART_MS_MAX, signal })
  }

  /**
   * Opens a regular file or a link to one. Anything else is refused, because reading a pipe or a device
   * could block forever. `O_NONBLOCK` keeps `open` from blocking, and doesn't affect regular files.
   */
  async #open(key: string): Promise<FileHandle> {
    const file = await open(join(this.#root, key), constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      if (!(await file.stat()).isFile()) throw notRegularFileError(key)
      return file
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** The cursor is the last name of the page before. Drafts are in another folder. */
  async list(
    prefix: string,
    { cursor, limit }: { cursor: string | null; limit: number },
    signal?: AbortSignal,
  ): Promise<ListedKeys> {
    const read = async (): Promise<ListedKeys> => {
      const entries = await readdir(join(this.#root, prefix), { withFileTypes: true })
      const names = entries
        .filter((entry) => !entry.isDirectory() && (cursor === null || entry.name > cursor))
        .map(({ name }) => name)
        .toSorted()
      const page = names.slice(0, limit)
      const keys = page.map((name) => `${prefix}${name}`)
      return { keys, cursor: names.length > limit ? (page.at(-1) ?? null) : null }
    }
    const found = await this.#unlessMissing(read, { timeoutMs: PART_MS_MAX, signal })
    return found ?? { keys: [], cursor: null }
  }

  async stat(key: string, signal?: AbortSignal): Promise<ObjectState | null> {
    const look = async (): Promise<ObjectState> => {
      const found = await stat(join(this.#root, key))
      if (!found.isFile()) throw notRegularFileError(key)
      return { bytes: found.size, readiness: 'ready' }
    }
    return await this.#unlessMissing(look, { timeoutMs: PART_MS_MAX, signal })
  }

  /** A file is never cold. */
  async restore(): Promise<void> {}

  async delete(key: string, signal?: AbortSignal): Promise<void> {
    const path = join(this.#root, key)
    const remove = async () => {
      await unlink(path)
      await syncFolder(dirname(path))
    }
    await this.#unlessMissing(remove, { timeoutMs: PART_MS_MAX, signal })
  }

  /**
   * Returns null if the object is missing but the folder exists. A missing folder must not
   * look like an archive without objects. `known-archive.ts` detects an empty folder, such as
   * a mount point without its disk.
   */
  async #unlessMissing<T>(
    use: () => Promise<T>,
    limits: { timeoutMs: number; signal: AbortSignal | undefined },
  ): Promise<T | null> {
    const find = async (): Promise<T | null> => {
      try {
        return await use()
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') throw error
      }
      await stat(this.#root)
      return null
    }
    try {
      return await operations.run(find, limits)
    } catch (error) {
      throw explainFileError(this.#root, error)
    }
  }

  /** Removes our drafts. If that takes too long, the next store does it after this process ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    if (this.#opening === null) return
    const late = () => new Error('the folder is still being opened')
    const opened = withDeadline(this.#opening, { timeoutMs: CLOSE_MS_MAX, late })
    const drafts = await opened.catch(() => null)
    if (drafts === null) return
    const close = async () => await this.#closeDrafts(drafts)
    await operations.run(close, { timeoutMs: CLOSE_MS_MAX }).catch(() => {})
  }

  /** Locking runs on the main thread, so first make sure that the folder responds. */
  async #closeDrafts({ path, lock }: Drafts): Promise<void> {
    await stat(this.#root).catch(() => {})
    using _lock = lock
    try {
      using _opening = await lockOpening(this.#root)
      await rm(path, { recursive: true, force: true })
    } catch {
      // The next store removes the rest, because our lock is free from now on.
    }
  }
}

async function readPart(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const { size } = await file.stat()
  const bytes = Buffer.alloc(Math.max(0, Math.min(end, size) - start))
  let read = 0
  while (read < bytes.length) {
    const { bytesRead } = await file.read(bytes, read, bytes.length - read, start + read)
    // The file was truncated in the meantime.
    if (bytesRead === 0) break
    read += bytesRead
  }
  return bytes.subarray(0, read)
}

function notRegularFileError(key: string): StorageError {
  return new StorageError(`The archived object ${key} is not a regular file.`)
}

/** The same bytes are the same version: what depends on them can't tell the difference. */
function tagOf(bytes: Buffer): string {
  return hash('sha256', bytes)
}

function nullIfMissing(error: unknown): null {
  if (codeOf(error) === 'ENOENT') return null
  throw error
}

/** Locked between comparing an object and replacing it. */
async function lockReplacing(root: string): Promise<Disposable> {
  const path = join(root, DRAFTS, 'replace.lock')
  await createLockFile(path)
  const lock = await acquireFileLock(path, { waitMsMax: OPENING_MS_MAX })
  if (lock === null) {
    throw new StorageError(
      `Another program has been writing to the archive folder ${root} for too long.`,
    )
  }
  return lock
}

/**
 * Prevents a store from looking for abandoned drafts while another has created
 * its folder but not locked it yet.
 */
async function lockOpening(root: string): Promise<Disposable> {
  const path = join(root, DRAFTS, 'lock')
  await createLockFile(path)
  const lock = await acquireFileLock(path, { waitMsMax: OPENING_MS_MAX })
  if (lock === null) {
    throw new StorageError(
      `Another program has been opening the archive folder ${root} for too long.`,
    )
  }
  return lock
}

async function removeDeadDrafts(root: string, own: string): Promise<void> {
  const entries = await readdir(join(root, DRAFTS), { withFileTypes: true })
  for (const entry of entries) {
    const drafts = join(root, DRAFTS, entry.name)
    if (!entry.isDirectory() || drafts === own) continue
    using lock = await acquireFileLock(join(drafts, 'lock'), { waitMsMax: 0 })
    if (lock !== null) await rm(drafts, { recursive: true, force: true })
  }
}

async function createFolder(path: string): Promise<void> {
  const firstMade = await mkdir(path, { recursive: true, mode: FOLDER_MODE })
  if (firstMade === undefined) return
  const owner = await ownerIn(dirname(firstMade))
  // The deepest first: the owner can't replace what is in a folder that still belongs to root.
  for (let folder = path; folder !== dirname(firstMade); folder = dirname(folder)) {
    if (owner) await lchown(folder, owner.uid, owner.gid)
    await syncFolder(dirname(folder))
  }
}

type Owner = { uid: number; gid: number }

/** Who a new entry of the folder has to be given to. Null unless this is root and the folder isn't root's. */
async function ownerIn(folder: string): Promise<Owner | null> {
  if (process.getuid?.() !== ROOT_ID) return null
  const { uid, gid } = await stat(folder)
  return uid === ROOT_ID ? null : { uid, gid }
}

/**
 * Creates the file of a lock for the owner of its folder, before it is locked. It never gives away what a link
 * points to. In one turn, because closing the file would release a lock that this process has on it.
 */
async function createLockFile(path: string): Promise<void> {
  const owner = await ownerIn(dirname(path))
  if (!owner) return
  try {
    const file = openSync(path, 'wx', FILE_MODE)
    fchownSync(file, owner.uid, owner.gid)
    closeSync(file)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

async function writeDurably(path: string, bytes: Buffer, owner: Owner | null): Promise<void> {
  await using file = await open(path, 'wx', FILE_MODE)
  if (owner) await file.chown(owner.uid, owner.gid)
  await file.writeFile(bytes)
  await file.sync()
}

/** A new or renamed entry is durable only after its folder is synced. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  await folder.sync()
}

/** Turns a file system error into a sentence. Returns any other error unchanged. */
function explainFileError(root: string, cause: unknown): unknown {
  const code = codeOf(cause)
  if (code === null || cause instanceof StorageError) return cause
  const isDenied = code === 'EACCES' || code === 'EPERM'
  return new StorageError(messageForCode(code, root), {
    cause,
    isDenied,
    isAbsent: code === 'ENOENT',
  })
}

function messageForCode(code: string, root: string): string {
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk of the archive folder ${root} is full. Free some space.`
    case 'EACCES':
    case 'EPERM':
      return `This user can't access the archive folder ${root}, or a part of it. Check its permissions.`
    case 'EROFS':
      return `The archive folder ${root} is on a read-only file system.`
    case 'ENOTDIR':
    case 'EEXIST':
    case 'EISDIR':
      return `The archive folder ${root} contains a file where a folder is expected, or the reverse.`
    case 'ENOENT':
      return `The archive folder ${root} is missing. Check that its disk is mounted.`
    default:
      return `The archive folder ${root} can't be used (${code}).`
  }
}

function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error)) return null
  // Our own bugs can have codes too. Only errors of the system or SQLite are the storage's fault.
  const isStorage = 'errno' in error || 'errcode' in error
  return isStorage && typeof error.code === 'string' ? error.code : null
}
