import { statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { dirname, join } from 'node:path'

const MODULES = join(import.meta.dirname, '../../../node_modules')

/**
 * Caches compiled code between starts, so that loading the service takes a third less CPU time: 1.4 s instead
 * of 2.1 s. Uses only a folder that no other user owns or can write to: root's files would prevent others
 * from updating the packages, and root must not run other users' code. If the folder isn't writable, nothing
 * is cached.
 */
export function cacheCompiledCode(folder: string = join(MODULES, '.cache/annals')): void {
  const cache = dirname(folder)
  if (isOwn(dirname(cache)) && [cache, folder].every((path) => isOwn(path) !== false)) {
    enableCompileCache(folder)
  }
}

const WRITABLE_BY_OTHERS = 0o022

/** Null if the folder doesn't exist. */
function isOwn(path: string): boolean | null {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) return null
  return stats.uid === process.getuid?.() && (stats.mode & WRITABLE_BY_OTHERS) === 0
}
