import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposableSync, readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { acquireFileLock } from '../../src/platform/file-lock.ts'

const MODULE = JSON.stringify(join(import.meta.dirname, '../../src/platform/file-lock.ts'))

test('a lock excludes others in the same process until it is disposed', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'annals-test-'))
  const path = join(folder.path, 'lock')
  const first = await acquireFileLock(path, { waitMsMax: 0 })
  assert(first !== null)
  assert.equal(await acquireFileLock(path, { waitMsMax: 50 }), null)
  const waiting = acquireFileLock(path, { waitMsMax: 5_000 })
  first[Symbol.dispose]()
  const second = await waiting
  assert(second !== null)
  second[Symbol.dispose]()
  assert.equal(statSync(path).size, 0)
})

test('a lock writes nothing, so it can be acquired on a full disk', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'annals-test-'))
  const path = join(folder.path, 'lock')
  using lock = await acquireFileLock(path, { waitMsMax: 0 })
  assert(lock !== null)
  assert.deepEqual([readdirSync(folder.path), statSync(path).size], [['lock'], 0])
})

test('a lock held by a killed process is free immediately', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'annals-test-'))
  const path = join(folder.path, 'lock')
  const script = `
    const { acquireFileLock } = await import(${MODULE})
    globalThis.lock = await acquireFileLock(${JSON.stringify(path)}, { waitMsMax: 0 })
    console.log('held')
    process.stdin.resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script])
  await once(child.stdout, 'data')
  assert.equal(await acquireFileLock(path, { waitMsMax: 0 }), null)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const lock = await acquireFileLock(path, { waitMsMax: 1_000 })
  assert(lock !== null)
  lock[Symbol.dispose]()
})
