import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import { promisify } from 'node:util'

import { EngineError, errorCode } from './engine-error.ts'
import { dataFolderHash, type EngineFiles, type FileOwner } from './files.ts'

/** The user that owns and runs the engine. */
export interface EngineUser extends FileOwner {
  readonly kind: 'caller' | 'folder owner' | 'own' | 'nobody'
  /** The user that runs initdb, which refuses a user without a name. */
  readonly creator: FileOwner
}

/**
 * Ids that no distribution, systemd feature or container range assigns, and that exist in a container
 * with 65,536 ids. systemd's list of user ids marks them as unused.
 */
const OWN_ID_MIN = 60_706
const OWN_IDS = 478
const OWN_TRIES_MAX = 10
/** A directory service that is down must not block the startup. */
const LOOKUP_MS_MAX = 5_000

const run = promisify(execFile)

/**
 * Chooses the user that owns and runs the engine. PostgreSQL refuses to run as root. As root, use the
 * owner of the existing database, else the owner of the data folder, else a dedicated user: an id that
 * nothing else uses and that needs no entry in the system's list of users. `nobody` is the last resort,
 * because other daemons that run as `nobody` could read and change the database.
 */
export async function chooseUser(files: EngineFiles): Promise<EngineUser> {
  const ownUid = process.getuid?.() ?? 0
  if (ownUid !== 0) return chooseCaller(files, { uid: ownUid, gid: process.getgid?.() ?? 0 })
  const nobody = await findNobody(files)
  const cluster = fs.lstatSync(files.cluster, { throwIfNoEntry: false })
  const folder = fs.statSync(files.dataDir)
  const holder = [cluster, folder].find((found) => found && found.uid !== 0)
  if (holder) {
    // A folder can belong to a user but to root's group, which the engine doesn't need.
    const owner = { uid: holder.uid, gid: holder.gid === 0 ? nobody.gid : holder.gid }
    const creator = (await hasName('passwd', owner.uid)) === true ? owner : nobody
    return { ...owner, creator, kind: kindOf(owner, { folder, nobody }) }
  }
  const own = await findOwnUser(files)
  if (own) return { ...own, creator: nobody, kind: 'own' }
  return { ...nobody, creator: nobody, kind: 'nobody' }
}

function chooseCaller(files: EngineFiles, caller: FileOwner): EngineUser {
  const engine = fs.lstatSync(files.engine, { throwIfNoEntry: false })
  if (engine && engine.uid !== caller.uid) {
    throw new EngineError(
      `${files.engine} belongs to another user (uid ${engine.uid}). Run annals as that user, or ` +
        'set ANNALS_DATA_DIR to another folder.',
    )
  }
  return { ...caller, creator: caller, kind: 'caller' }
}

function kindOf(
  { uid }: FileOwner,
  { folder, nobody }: { folder: FileOwner; nobody: FileOwner },
): EngineUser['kind'] {
  if (uid === nobody.uid) return 'nobody'
  return uid === folder.uid ? 'folder owner' : 'own'
}

/** Always the same for a data folder, so that concurrent starts agree. Null if none is available. */
async function findOwnUser(files: EngineFiles): Promise<FileOwner | null> {
  if (process.platform !== 'linux') return null
  const first = Number.parseInt(dataFolderHash(files).slice(0, 8), 16)
  const maps = ['/proc/self/uid_map', '/proc/self/gid_map'].map(readIdMap)
  for (let tries = 0; tries < OWN_TRIES_MAX; tries += 1) {
    const id = OWN_ID_MIN + ((first + tries) % OWN_IDS)
    if (!maps.every((map) => hasId(map, id))) return null
    const found = [await hasName('passwd', id), await hasName('group', id)]
    if (found.includes(true)) continue
    if (found.includes(null)) throw unknownIdError(files, id)
    return { uid: id, gid: id }
  }
  return null
}

function readIdMap(path: string): string {
  try {
    return fs.readFileSync(path, 'utf8')
  } catch {
    // Without user namespaces, all ids exist.
    return '0 0 4294967295'
  }
}

/** Whether the user namespace maps the id. Each line is: first id inside, first outside, count. */
export function hasId(map: string, id: number): boolean {
  return map.split('\n').some((line) => {
    const [first = Number.NaN, , count = Number.NaN] = line.trim().split(/\s+/).map(Number)
    return id >= first && id < first + count
  })
}

/** The exit code of `getent` if the entry doesn't exist. */
const NOT_FOUND = 2

/**
 * Whether the id belongs to a user or group of the system or of a directory service. Null if `getent` fails
 * or times out: the id may belong to a user that the directory can't report at the moment.
 */
export async function hasName(
  list: 'passwd' | 'group',
  id: number,
  timeoutMs: number = LOOKUP_MS_MAX,
): Promise<boolean | null> {
  try {
    await run('getent', [list, String(id)], { timeout: timeoutMs })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === NOT_FOUND) return false
    if (errorCode(error) !== 'ENOENT') return null
    // Without getent, there is no directory service either.
    const lines = fs.readFileSync(`/etc/${list}`, 'utf8').split('\n')
    return lines.some((line) => line.split(':')[2] === String(id))
  }
}

function unknownIdError({ dataDir }: EngineFiles, id: number): EngineError {
  return new EngineError(
    `Can't choose a user for PostgreSQL: getent does not report whether the id ${id} is free. ` +
      `Check the directory service of this system, or give ${dataDir} to a user with chown.`,
  )
}

async function findNobody(files: EngineFiles): Promise<FileOwner> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', 'nobody']), run('id', ['-g', 'nobody'])])
    return { uid: Number(uid.stdout) >>> 0, gid: Number(gid.stdout) >>> 0 }
  } catch (cause) {
    // A string is a system error code: the program `id` could not be started.
    const code = errorCode(cause)
    if (code !== undefined) {
      const hint = code === 'EMFILE' ? ' Raise the limit on open files (ulimit -n).' : ''
      throw new EngineError(
        `Can't choose a user for PostgreSQL: the program id can't be started (${code}).${hint}`,
        { cause },
      )
    }
    throw new EngineError(
      `PostgreSQL does not run as root, and this system has no user "nobody". Run annals as a ` +
        `regular user, make one the owner of ${files.dataDir}, or set ANNALS_DATABASE_URL.`,
      { cause },
    )
  }
}
