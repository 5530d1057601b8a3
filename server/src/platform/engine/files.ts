import { createHash, randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { join, resolve } from 'node:path'

import { EngineError, errorCode, explainFileError } from './engine-error.ts'
import { ENGINE_MAJOR } from './package.ts'
import { readSmallFile } from '../small-file.ts'

/**
 * The paths of one embedded engine.
 *
 * `engine/` and everything in it belongs to the user that PostgreSQL runs as. The other files belong to the
 * owner of the data folder, so the engine can't read its own password or forge its start log.
 */
export interface EngineFiles {
  readonly dataDir: string
  readonly lock: string
  readonly password: string
  readonly startLog: string
  readonly engine: string
  readonly cluster: string
  readonly run: string
  readonly log: string
}

export interface FileOwner {
  readonly uid: number
  readonly gid: number
}

/**
 * Creates a missing data folder, unless `mayCreate` is false. From then on, its
 * real path identifies the engine.
 */
export function openDataFolder(path: string, { mayCreate }: { mayCreate: boolean }): EngineFiles {
  const expected = engineFiles(resolve(path))
  // Check this before writing anything, even the lock file.
  if (!mayCreate && !fs.existsSync(expected.engine)) throw missingClusterError(expected)
  try {
    // When running as root, PostgreSQL's user has to traverse the folder to reach its own.
    fs.mkdirSync(path, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 })
    fs.accessSync(path, fs.constants.W_OK | fs.constants.X_OK)
    return engineFiles(fs.realpathSync(path))
  } catch (cause) {
    throw explainFileError(path, cause)
  }
}

export function engineFiles(dataDir: string): EngineFiles {
  const engine = join(dataDir, 'engine')
  return {
    dataDir,
    lock: join(dataDir, 'engine.lock'),
    password: join(dataDir, 'engine.password'),
    startLog: join(dataDir, 'engine.log'),
    engine,
    cluster: join(engine, 'cluster'),
    run: join(engine, 'run'),
    log: join(engine, 'log'),
  }
}

/** True if the folder contains a cluster of our version, false if it contains none. Throws otherwise. */
export function hasCluster(files: EngineFiles): boolean {
  let major: string
  try {
    if (!fs.existsSync(files.engine)) return false
    // A folder that can't be entered must not look like an empty one.
    fs.readdirSync(files.engine)
    if (!fs.existsSync(files.cluster)) return false
    major = fs.readFileSync(join(files.cluster, 'PG_VERSION'), 'utf8').trim()
  } catch (cause) {
    if (errorCode(cause) !== 'ENOENT') throw cause
    throw new EngineError(
      `${files.cluster} is not a PostgreSQL data folder. Move it, or set ANNALS_DATA_DIR ` +
        'to another folder.',
      { cause },
    )
  }
  if (major === ENGINE_MAJOR) return true
  throw new EngineError(
    `${files.cluster} was created by PostgreSQL ${major}, but this release runs PostgreSQL ` +
      `${ENGINE_MAJOR}. Nothing was changed. Start the release that created it.`,
  )
}

/**
 * Throws unless a cluster may be created: an empty one must not replace one that was lost. The
 * password file gets its final name once the first cluster is complete (`storeEnginePassword`), so its
 * existence shows that there was one.
 */
export function refuseMissingCluster(
  files: EngineFiles,
  { mayCreate }: { mayCreate: boolean },
): void {
  if (!mayCreate || fs.existsSync(files.password)) throw missingClusterError(files)
}

function missingClusterError(files: EngineFiles): EngineError {
  if (!fs.existsSync(files.password)) {
    return new EngineError(
      `There is no data in ${files.dataDir}, or you can't read it. Run this where the service runs, ` +
        'or set ANNALS_DATA_DIR to its data folder.',
    )
  }
  return new EngineError(
    `The database in ${files.cluster} is missing, and no new one was created. Restore the data ` +
      `folder from a backup, or delete ${files.password} to start with an empty database.`,
  )
}

/** Creates the folders that PostgreSQL writes to. All of them belong to its user. */
export function prepareFolders(files: EngineFiles, owner: FileOwner): void {
  for (const path of [files.engine, files.run, files.log]) {
    if (!fs.existsSync(path)) fs.mkdirSync(path, { mode: 0o700 })
  }
  if (process.getuid?.() !== 0) return
  // If the folder is new, or root has copied it, everything belongs to root.
  const isRoots = fs.lstatSync(files.engine).uid === 0
  const entries = isRoots
    ? fs.readdirSync(files.engine, { recursive: true, encoding: 'utf8' })
    : ['run', 'log']
  for (const entry of entries) fs.lchownSync(join(files.engine, entry), owner.uid, owner.gid)
  // Change this folder last, so that after a crash it still belongs to root
  // and the next start repeats this.
  fs.lchownSync(files.engine, owner.uid, owner.gid)
}

/** Gives a path that root created in another user's data folder to that user. */
export function chownToDataOwner(files: EngineFiles, path: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = fs.statSync(files.dataDir)
  fs.lchownSync(path, uid, gid)
}

/** Returns the password of an existing cluster. */
export function readEnginePassword(files: EngineFiles): string {
  // The first start ended between creating the cluster and `storeEnginePassword`.
  if (!fs.existsSync(files.password) && fs.existsSync(draftOf(files))) storeEnginePassword(files)
  const exists = fs.existsSync(files.password)
  const password = exists ? readSmallFile(files.password).trim() : ''
  if (password !== '') return password
  throw new EngineError(
    `${files.password} is ${exists ? 'empty' : 'missing'} and the database in ${files.cluster} ` +
      "can't be opened without it. Restore it from a backup.",
  )
}

/** Creates a password for a new cluster. It must be durable before the cluster is. */
export function draftEnginePassword(files: EngineFiles): string {
  const password = randomBytes(32).toString('base64url')
  writePrivately(draftOf(files), `${password}\n`)
  chownToDataOwner(files, draftOf(files))
  syncFolder(files.dataDir)
  return password
}

/** Makes the draft the password of the cluster, once the cluster is complete. */
export function storeEnginePassword(files: EngineFiles): void {
  fs.renameSync(draftOf(files), files.password)
  syncFolder(files.dataDir)
}

function draftOf(files: EngineFiles): string {
  return `${files.password}.new`
}

/** Durable when it returns, and from the first byte readable only by its owner. */
export function writePrivately(path: string, text: string): void {
  fs.rmSync(path, { force: true })
  fs.writeFileSync(path, text, { flag: 'wx', mode: 0o600, flush: true })
}

/** A new or renamed entry is durable only after its folder is synced. */
export function syncFolder(path: string): void {
  const folder = fs.openSync(path, 'r')
  try {
    fs.fsyncSync(folder)
  } finally {
    fs.closeSync(folder)
  }
}

/** Short enough for names, and the same for every process that uses the folder. */
export function dataFolderHash(files: EngineFiles): string {
  return createHash('sha256').update(files.dataDir).digest('hex').slice(0, 16)
}
