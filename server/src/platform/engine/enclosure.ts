import * as fs from 'node:fs'
import { join } from 'node:path'

import { dataFolderHash, type EngineFiles, type FileOwner } from './files.ts'

/**
 * A private mount namespace with both folders at a place that the owner can enter. Each step replaces the
 * previous program, so the pid we spawn is PostgreSQL's own. A user namespace wouldn't do: in it,
 * PostgreSQL would still be root on the host.
 */
const ENCLOSE = [
  'native=$1 engine=$2 place=$3 uid=$4 gid=$5',
  'shift 5',
  'mount --bind "$native" "$place/native"',
  'mount --bind "$engine" "$place/engine"',
  'exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs -- "$@"',
].join(' && ')

/**
 * The program and arguments that run `program` in the namespace. Its path is the one inside the namespace.
 */
export function encloseCommand(
  place: string,
  { files, native, owner }: { files: EngineFiles; native: string; owner: FileOwner },
  program: readonly string[],
): { file: string; args: string[] } {
  const folders = [native, files.engine, place, String(owner.uid), String(owner.gid)]
  const shell = ['/bin/sh', '-c', ENCLOSE, 'sh', ...folders, ...program]
  return { file: 'unshare', args: ['--mount', '--propagation', 'private', '--', ...shell] }
}

/** /run is emptied at boot and not writable by other users; /tmp is for systems without it. */
export function mountPoints(files: EngineFiles): string[] {
  return ['/run', '/tmp'].map((root) => join(root, `annals-engine-${dataFolderHash(files)}`))
}

/** The paths where the engine itself may see its folder. */
export function possibleEnginePaths(files: EngineFiles): string[] {
  return [files.engine, ...mountPoints(files).map((place) => join(place, 'engine'))]
}

export function createMountPoint(place: string): boolean {
  try {
    fs.mkdirSync(place, { recursive: true, mode: 0o711 })
    const found = fs.lstatSync(place)
    // In /tmp, another user could have taken the name first.
    if (!found.isDirectory() || found.uid !== 0 || (found.mode & 0o022) !== 0) return false
    // Restores the mode that the umask may have reduced.
    fs.chmodSync(place, 0o711)
    for (const name of ['native', 'engine']) fs.mkdirSync(join(place, name), { recursive: true })
    return true
  } catch {
    return false
  }
}

export function removeMountPoint(place: string): void {
  for (const path of [join(place, 'native'), join(place, 'engine'), place]) {
    try {
      fs.rmdirSync(path)
    } catch {
      // It was never created or isn't ours. At worst, empty folders remain.
    }
  }
}

/** Called by the last process to leave. A mount namespace leaves nothing else behind. */
export function removeEnclosure(files: EngineFiles): void {
  if (process.getuid?.() === 0) mountPoints(files).forEach(removeMountPoint)
}
