import * as fs from 'node:fs'
import { join } from 'node:path'

import { dataFolderHash, type EngineFiles, type Owner } from './engine-files.ts'

/**
 * A private mount namespace in which both folders stand at a place that the owner can enter. Each
 * step replaces the one before it, so the pid we spawn is PostgreSQL's own. Not a user namespace:
 * in one, PostgreSQL would still be the host's root.
 */
const ENCLOSE = [
  'native=$1 engine=$2 place=$3 uid=$4 gid=$5',
  'shift 5',
  'mount --bind "$native" "$place/native"',
  'mount --bind "$engine" "$place/engine"',
  'exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs -- "$@"',
].join(' && ')

/** The program and arguments that run `program` in the namespace, given as it is seen there. */
export function encloseCommand(
  place: string,
  { files, native, owner }: { files: EngineFiles; native: string; owner: Owner },
  program: readonly string[],
): { file: string; args: string[] } {
  const folders = [native, files.engine, place, String(owner.uid), String(owner.gid)]
  const shell = ['/bin/sh', '-c', ENCLOSE, 'sh', ...folders, ...program]
  return { file: 'unshare', args: ['--mount', '--propagation', 'private', '--', ...shell] }
}

/** /run is emptied at boot and closed to strangers; /tmp for systems that lack it. */
export function enclosurePlaces(files: EngineFiles): string[] {
  return ['/run', '/tmp'].map((root) => join(root, `annals-engine-${dataFolderHash(files)}`))
}

/** Where the engine's folder can appear to the engine itself. */
export function engineSightings(files: EngineFiles): string[] {
  return [files.engine, ...enclosurePlaces(files).map((place) => join(place, 'engine'))]
}

export function makePlace(place: string): boolean {
  try {
    fs.mkdirSync(place, { recursive: true, mode: 0o711 })
    const found = fs.lstatSync(place)
    // In /tmp a stranger could have taken the name first.
    if (!found.isDirectory() || found.uid !== 0 || (found.mode & 0o022) !== 0) return false
    // Whatever the umask took away.
    fs.chmodSync(place, 0o711)
    for (const name of ['native', 'engine']) fs.mkdirSync(join(place, name), { recursive: true })
    return true
  } catch {
    return false
  }
}

export function removePlace(place: string): void {
  for (const path of [join(place, 'native'), join(place, 'engine'), place]) {
    try {
      fs.rmdirSync(path)
    } catch {
      // Never made, or not ours: empty folders at worst.
    }
  }
}

/** For the last one out: nothing of a mount namespace stays behind. */
export function removeEnclosure(files: EngineFiles): void {
  if (process.getuid?.() === 0) enclosurePlaces(files).forEach(removePlace)
}
