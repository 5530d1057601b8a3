import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { EngineError } from './engine-error.ts'
import { dataFolderHash, type EngineFiles, type FileOwner } from './files.ts'

const run = promisify(execFile)

/**
 * How to start a program of the engine: the command, and the paths of the folders as the program sees them.
 */
export interface EngineRunner {
  readonly native: string
  readonly engine: string
  /** Runs as the engine's user by default. */
  readonly command: (program: string, args: readonly string[], as?: FileOwner) => EngineCommand
}

export interface EngineCommand {
  readonly file: string
  readonly args: readonly string[]
  readonly options: EngineCommandOptions
}

interface EngineCommandOptions {
  cwd: string
  env: Record<string, string>
  uid?: number
  gid?: number
}

/** The engine's programs inherit nothing from our environment, which may contain secrets. */
const OPTIONS: EngineCommandOptions = {
  // The engine's user may not have access to our current working folder.
  cwd: '/',
  env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' },
}

/** Returns the first method by which the owner can run PostgreSQL's programs on its folder. */
export async function chooseRunner(
  files: EngineFiles,
  native: string,
  owner: FileOwner,
): Promise<EngineRunner> {
  if (process.getuid?.() !== 0) {
    const command: EngineRunner['command'] = (file, args) => ({ file, args, options: OPTIONS })
    return { native, engine: files.engine, command }
  }
  const dropped = unprivilegedRunner(files, native, owner)
  if (await canEnter(dropped)) return dropped
  if (process.platform === 'linux') {
    for (const mountPoint of mountPoints(files)) {
      const enclosed = enclosingRunner({ files, native, owner }, mountPoint)
      if (await canEnter(enclosed)) return enclosed
    }
  }
  throw cannotRunError(files, native, owner)
}

/** The paths where the engine itself may see its folder. */
export function possibleEnginePaths(files: EngineFiles): string[] {
  return [files.engine, ...mountPoints(files).map((mountPoint) => join(mountPoint, 'engine'))]
}

/** Mounting at a root hides its content, so use the first one that exists and doesn't contain our folders. */
function mountPoints(files: EngineFiles): string[] {
  return ['/run', '/tmp', '/mnt'].map((root) =>
    join(root, `annals-engine-${dataFolderHash(files)}`),
  )
}

function unprivilegedRunner(files: EngineFiles, native: string, owner: FileOwner): EngineRunner {
  return {
    native,
    engine: files.engine,
    command: (file, args, { uid, gid } = owner) => ({
      file,
      args,
      // Node requires a signed number. On macOS, nobody is 4294967294, which is -2.
      options: { ...OPTIONS, uid: uid | 0, gid: gid | 0 },
    }),
  }
}

/**
 * Exposes both folders at a path that the owner can enter, in a private mount namespace. The path is in an
 * in-memory file system that only this namespace can see, so nothing is left behind. Each step replaces the
 * previous program, so the pid we spawn is PostgreSQL's own. A user namespace wouldn't do: in it,
 * PostgreSQL would still be root on the host.
 */
const ENCLOSE = [
  'native=$1 engine=$2 target=$3 uid=$4 gid=$5',
  'shift 5',
  'mount -t tmpfs -o mode=755,size=64k tmpfs "${target%/*}"',
  'mkdir -m 755 "$target" "$target/native" "$target/engine"',
  'mount --bind "$native" "$target/native"',
  'mount --bind "$engine" "$target/engine"',
  'exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs -- "$@"',
].join(' && ')

function enclosingRunner(
  { files, native, owner }: { files: EngineFiles; native: string; owner: FileOwner },
  mountPoint: string,
): EngineRunner {
  const unshare = ['--mount', '--propagation', 'private', '--', '/bin/sh', '-c', ENCLOSE, 'sh']
  return {
    native: join(mountPoint, 'native'),
    engine: join(mountPoint, 'engine'),
    command: (program, args, { uid, gid } = owner) => ({
      file: 'unshare',
      args: [...unshare, native, files.engine, mountPoint, `${uid}`, `${gid}`, program, ...args],
      options: OPTIONS,
    }),
  }
}

async function canEnter({ native, engine, command }: EngineRunner): Promise<boolean> {
  const check = 'test -x "$1/bin/postgres" && test -r "$1/share/postgresql" && cd "$2" && test -w .'
  const { file, args, options } = command('/bin/sh', ['-c', check, 'sh', native, engine])
  return run(file, args, options).then(
    () => true,
    () => false,
  )
}

function cannotRunError(files: EngineFiles, native: string, owner: FileOwner): EngineError {
  return new EngineError(
    `PostgreSQL does not run as root, and the user it would run as (uid ${owner.uid}) can't ` +
      `enter ${native} or ${files.engine}. Set ANNALS_DATA_DIR to a folder that user can enter, ` +
      'run annals as a regular user, or set ANNALS_DATABASE_URL.',
  )
}
