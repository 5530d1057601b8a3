import assert from 'node:assert/strict'
import { mkdirSync, mkdtempDisposableSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadBundles, PRELOAD } from './load-bundles.ts'

/** Bundles that do nothing but count how often they are loaded, and the time at which packages changed. */
async function loads(bundledAt: number | null, lockedAt: number | null): Promise<number> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'annals-bundles-'))
  const bundles = join(folder.path, 'bundles')
  const lockfile = join(folder.path, 'package-lock.json')
  const loaded: { count?: number } = {}
  Object.assign(globalThis, { loaded })
  mkdirSync(bundles)
  write(
    join(bundles, PRELOAD),
    'globalThis.loaded.count = (globalThis.loaded.count ?? 0) + 1',
    bundledAt,
  )
  write(lockfile, '{}', lockedAt)
  await loadBundles({ bundles, lockfile })
  return loaded.count ?? 0
}

function write(path: string, text: string, changedAt: number | null): void {
  if (changedAt === null) return
  writeFileSync(path, text)
  utimesSync(path, changedAt, changedAt)
}

test('bundles are loaded if the lockfile is older, or missing as in the npm package', async () => {
  assert.equal(await loads(2_000, 1_000), 1)
  assert.equal(await loads(1_000, null), 1)
})

test('without bundles, or if packages changed after they were bundled, packages are loaded as usual', async () => {
  assert.equal(await loads(null, 1_000), 0)
  assert.equal(await loads(1_000, 2_000), 0)
})
