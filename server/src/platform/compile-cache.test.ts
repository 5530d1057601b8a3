import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempDisposableSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

const MODULE = pathToFileURL(join(import.meta.dirname, 'compile-cache.ts')).href

/** In its own process, because the cache applies to a whole process. */
function load(folder: string): { status: number | null; stderr: string } {
  const program = `
    import { cacheCompiledCode } from ${JSON.stringify(MODULE)}
    cacheCompiledCode(${JSON.stringify(folder)})
    await import(${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'id.ts')).href)})`
  const args = ['--input-type=module', '-e', program]
  const { status, stderr } = spawnSync(process.execPath, args, { env: {}, encoding: 'utf8' })
  return { status, stderr }
}

test('caches compiled code in node_modules if it belongs to the same user, and works without a cache otherwise', () => {
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'annals-compiled-'))
  const own = join(temporary.path, '.cache/annals')
  assert.deepEqual(load(own), { status: 0, stderr: '' })
  assert(readdirSync(own, { recursive: true }).length > 1)

  const blocked = join(temporary.path, 'blocked')
  mkdirSync(blocked)
  writeFileSync(join(blocked, '.cache'), '')
  for (const folder of [join(blocked, '.cache/annals'), '/nowhere/.cache/annals']) {
    assert.deepEqual(load(folder), { status: 0, stderr: '' })
  }
})

const isRoot = process.getuid?.() === 0

test('caches nothing if another user owns node_modules', { skip: !isRoot && 'needs root' }, () => {
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'annals-compiled-'))
  chownSync(temporary.path, 65_534, 65_534)
  assert.deepEqual(load(join(temporary.path, '.cache/annals')), { status: 0, stderr: '' })
  assert.deepEqual(readdirSync(temporary.path), [])
})
