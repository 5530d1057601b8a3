import { statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

export const BUNDLES = join(import.meta.dirname, '../../dist')
export const PRELOAD = 'preload.mjs'
/** If it changed since packages were bundled, others may be installed. The npm package of Annals has none. */
const LOCKFILE = join(import.meta.dirname, '../../../package-lock.json')

/**
 * Loads the packages with the most modules from the bundles that `npm install` made of them, so that a command
 * that uses the database starts in half the time. Without bundles, or with outdated ones, the packages are loaded
 * as usual.
 */
export async function loadBundles({ bundles = BUNDLES, lockfile = LOCKFILE } = {}): Promise<void> {
  const preload = join(bundles, PRELOAD)
  const bundledAt = changedAt(preload)
  if (bundledAt === null || bundledAt < (changedAt(lockfile) ?? 0)) return
  await import(pathToFileURL(preload).href)
}

function changedAt(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? null
}
