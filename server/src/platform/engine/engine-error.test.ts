import assert from 'node:assert/strict'
import { test } from 'node:test'

import { explainFileError } from './engine-error.ts'

const messageOf = (fields: object) =>
  String(explainFileError('/data', Object.assign(new Error('failed'), fields)))

test('names the path that could not be written', () => {
  const code = 'EACCES'
  assert.match(messageOf({ code, syscall: 'open', path: '/data/a' }), / write to \/data\/a\./)
  const link = { code, syscall: 'symlink', path: '/lib/a', dest: '/data/b' }
  assert.match(messageOf(link), / write to \/data\/b\./)
  const program = { code, syscall: 'spawn /lib/initdb', path: '/lib/initdb' }
  assert.match(messageOf(program), / write to \/data\./)
})
