import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { OperatorError } from '../errors.ts'
import { readSmallFile } from './small-file.ts'

test('reads a file of at most 4 KiB, and refuses a larger one, a device and a folder', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'annals-small-'))
  const path = join(folder.path, 'key')
  writeFileSync(path, 'x'.repeat(4_096))
  assert.equal(readSmallFile(path).length, 4_096)
  writeFileSync(path, 'x'.repeat(4_097))
  assert.throws(() => readSmallFile(path), /has more than 4096 bytes/)
  for (const other of ['/dev/zero', '/dev/full', folder.path]) {
    assert.throws(() => readSmallFile(other), OperatorError, other)
  }
})

test('reads a pipe to the end of its writer, and refuses one without a writer', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'annals-small-'))
  const path = join(folder.path, 'pipe')
  execFileSync('mkfifo', [path])
  assert.throws(() => readSmallFile(path, { pipeMsMax: 50 }), /not closed within 0\.05 seconds/)
  spawn('sh', ['-c', 'exec > "$0"; printf a; sleep 0.2; printf b', path], { stdio: 'ignore' })
  assert.equal(readSmallFile(path), 'ab')
})
