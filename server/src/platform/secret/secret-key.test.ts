import assert from 'node:assert/strict'
import {
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readOrCreateSecretKey } from './secret-key.ts'

test('a new secret key is not written through a link, and leaves no draft', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'annals-key-'))
  const victim = join(folder.path, 'victim')
  writeFileSync(victim, 'precious')
  symlinkSync(victim, join(folder.path, `secret.key.${process.pid}`))
  const secretKey = readOrCreateSecretKey(folder.path)
  assert.equal(readFileSync(victim, 'utf8'), 'precious')
  const text = secretKey.reveal().toString('base64')
  assert.equal(readFileSync(join(folder.path, 'secret.key'), 'utf8'), text)
  assert.equal(readdirSync(folder.path).length, 3)
})
