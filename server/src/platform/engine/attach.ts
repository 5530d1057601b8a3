import { chmodSync, existsSync } from 'node:fs'
import { totalmem } from 'node:os'

import { bootPostmaster, waitForResponse } from './boot.ts'
import { createCluster, ENGINE_ROLE } from './cluster.ts'
import { EngineError, explainFileError } from './engine-error.ts'
import {
  draftEnginePassword,
  engineFiles,
  type EngineFiles,
  chownToDataOwner,
  hasCluster,
  storeEnginePassword,
  prepareFolders,
  readEnginePassword,
  refuseMissingCluster,
} from './files.ts'
import { type EngineConnection, type Presence, probeEngine } from './presence.ts'
import { findPostmaster, stopPostmaster } from './process.ts'
import { chooseRunner } from './runner.ts'
import { ENGINE_PORT, engineSettings, type EngineSettings } from './settings.ts'
import { openSocketFolder, removeSocketLink } from './socket.ts'
import { chooseUser, type EngineUser } from './user.ts'
import { acquireFileLock } from '../file-lock.ts'

/** One data folder and the programs that serve it. */
export interface Engine {
  readonly files: EngineFiles
  readonly native: string
  readonly settings: EngineSettings
}

/** A running engine that this process uses. */
export interface AttachedEngine {
  readonly presence: Presence
  /** The pid of the PostgreSQL that `presence` is connected to; null if it can't be found. */
  readonly postmasterPid: number | null
}

export interface Attachment extends AttachedEngine {
  readonly connection: EngineConnection
  readonly wasRunning: boolean
  readonly user: EngineUser
}

interface AttachOptions {
  readonly exclusive: boolean
  readonly mayCreate: boolean
  readonly signal?: AbortSignal | undefined
}

const ENGINE_DATABASE = 'annals'

/** Longer than an ordinary start or stop, during which a process holds the lock. */
const LOCK_WAIT_MS_MAX = 90_000

/**
 * Attaches to the running engine; starts it first if necessary, and creates it before that. All processes use
 * this path, including a service that lost its engine. The file lock excludes all others until this returns.
 */
export async function attachToEngine(engine: Engine, options: AttachOptions): Promise<Attachment> {
  removeClientVariables()
  const { files } = engine
  try {
    // Check this before writing anything, even the lock file, so that the folder of
    // another version stays unchanged.
    const user = await chooseUser(files)
    hasCluster(files)
    using lock = await lockEngine(files, options.signal)
    options.signal?.throwIfAborted()
    if (lock === null) throw lockBusyError(files)
    const attached = await ensureRunning(engine, user, options)
    await announce(engine, attached, options)
    return { ...attached, user }
  } catch (cause) {
    throw explainFileError(files.engine, cause)
  }
}

/** Registers this process as a user of the engine. If that fails, it leaves the engine again. */
async function announce(
  engine: Engine,
  attached: Omit<Attachment, 'user'>,
  { exclusive, signal }: AttachOptions,
): Promise<void> {
  const { connection, presence } = attached
  try {
    signal?.throwIfAborted()
    const isFree = await presence.announce({ exclusive })
    if (!isFree) throw secondServiceError(engine.files, await presence.findServicePid())
    await presence.ensureDatabase(ENGINE_DATABASE)
  } catch (cause) {
    await stopIfLast(engine, connection, attached).catch(() => {})
    signal?.throwIfAborted()
    if (cause instanceof EngineError) throw cause
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new EngineError(
      `PostgreSQL in ${engine.files.engine} failed after it started: ${message}`,
      { cause },
    )
  }
}

/**
 * `pg` reads `PGSSLMODE`, `PGREPLICATION` and others for every option that isn't set. They are meant for
 * another server, and some of them make every connection to the engine fail.
 */
function removeClientVariables(): void {
  for (const name of Object.keys(process.env)) if (name.startsWith('PG')) delete process.env[name]
}

/**
 * How to reach the engine if it is running, or null. Neither starts it nor keeps it running: another process may
 * stop it at any time.
 */
export function findRunningEngine(dataDir: string): EngineConnection | null {
  removeClientVariables()
  const files = engineFiles(dataDir)
  if (findPostmaster(files) === null || !existsSync(files.password)) return null
  return engineConnection(files, readEnginePassword(files))
}

export interface DetachResult {
  /** False if other processes still use the engine. */
  readonly isStopped: boolean
  /** Why the process left without the lock, or null. */
  readonly lockError: unknown
}

/**
 * Leaves the engine, and stops it if no other process uses it. `attached` is null while the engine is lost.
 *
 * An unusable lock file also prevents other processes from joining, so the engine is stopped without the
 * lock. While another process holds the lock, it may be about to join, so the engine keeps running.
 */
export async function detachFromEngine(
  engine: Engine,
  connection: EngineConnection,
  attached: AttachedEngine | null,
): Promise<DetachResult> {
  let lock: Disposable | null
  try {
    lock = await lockEngine(engine.files)
  } catch (lockError) {
    return { isStopped: await stopIfLast(engine, connection, attached), lockError }
  }
  using _lock = lock
  if (lock === null) {
    await attached?.presence.close()
    return { isStopped: false, lockError: lockBusyError(engine.files) }
  }
  return { isStopped: await stopIfLast(engine, connection, attached), lockError: null }
}

async function ensureRunning(
  { files, native, settings }: Engine,
  user: EngineUser,
  { mayCreate, signal }: AttachOptions,
): Promise<Omit<Attachment, 'user'>> {
  const exists = hasCluster(files)
  if (!exists) refuseMissingCluster(files, { mayCreate })
  prepareFolders(files, user)
  const password = exists ? readEnginePassword(files) : draftEnginePassword(files)
  const connection = engineConnection(files, password)
  if (exists) {
    const presence = await waitForResponse(files, connection, {
      isAlive: () => findPostmaster(files) !== null,
      signal,
    })
    if (presence !== null) {
      return { connection, presence, postmasterPid: findPostmaster(files), wasRunning: true }
    }
  }
  const runner = await chooseRunner(files, native, user)
  if (!exists) {
    await createCluster(files, { runner, user, password, signal })
    storeEnginePassword(files)
  }
  signal?.throwIfAborted()
  const allSettings = engineSettings(memoryBytes(), settings)
  const presence = await bootPostmaster(files, connection, {
    runner,
    settings: allSettings,
    signal,
  })
  return { connection, presence, postmasterPid: findPostmaster(files), wasRunning: false }
}

function engineConnection(files: EngineFiles, password: string): EngineConnection {
  const host = openSocketFolder(files)
  return { host, port: ENGINE_PORT, user: ENGINE_ROLE, password, database: ENGINE_DATABASE }
}

async function stopIfLast(
  { files }: Engine,
  connection: EngineConnection,
  attached: AttachedEngine | null,
): Promise<boolean> {
  if (await isUsedByOthers(connection, attached?.presence ?? null)) return false
  // The data folder may have been moved, together with its pid file. Another folder with its own engine may
  // have taken its place; that engine and its link must stay.
  await stopPostmaster(files, attached === null ? findPostmaster(files) : attached.postmasterPid)
  if (findPostmaster(files) === null) removeSocketLink(files)
  return true
}

async function isUsedByOthers(
  connection: EngineConnection,
  presence: Presence | null,
): Promise<boolean> {
  // An engine that doesn't accept connections yet has no users, so only an open or full one counts.
  const probe =
    presence === null ? await probeEngine(connection) : { kind: 'open' as const, presence }
  if (probe.kind !== 'open') return probe.kind === 'full'
  try {
    return !(await probe.presence.isLast())
  } catch {
    // The connection broke, and all others with it, because the engine stopped on its own.
    return false
  } finally {
    await probe.presence.close()
  }
}

/** Null if another process holds the lock for too long, or if `signal` aborts first. */
async function lockEngine(files: EngineFiles, signal?: AbortSignal): Promise<Disposable | null> {
  try {
    const isNew = !existsSync(files.lock)
    const lock = await acquireFileLock(files.lock, { waitMsMax: LOCK_WAIT_MS_MAX, signal })
    if (isNew && lock !== null) {
      chmodSync(files.lock, 0o600)
      chownToDataOwner(files, files.lock)
    }
    return lock
  } catch (cause) {
    const explained = explainFileError(files.lock, cause)
    if (explained !== cause) throw explained
    throw new EngineError(`The lock file ${files.lock} can't be used: ${String(cause)}`, { cause })
  }
}

function lockBusyError(files: EngineFiles): EngineError {
  return new EngineError(
    `Another annals process has been starting or stopping the database in ${files.dataDir} for ` +
      `${LOCK_WAIT_MS_MAX / 1_000} seconds. Try again when it is done.`,
  )
}

function memoryBytes(): number {
  // The limit of a container; 0 or a huge number if there is none.
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

function secondServiceError(files: EngineFiles, pid: number | null): EngineError {
  const processName = pid === null ? '' : ` (process ${pid})`
  return new EngineError(
    `Another annals service${processName} is already running on the data folder ${files.dataDir}. Stop ` +
      'it first, or set ANNALS_DATA_DIR to another folder.',
  )
}
