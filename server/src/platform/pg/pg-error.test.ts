import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOutage, isOutOfDescriptors, isRetryable } from './pg-error.ts'
import { UnfitServerError } from './servers.ts'

const withCode = (code: string) => Object.assign(new Error('failed'), { code })

test('treats a server that responds but cannot be used as an outage', () => {
  assert(isOutage(new UnfitServerError('a:5432 is read-only or a standby')))
  for (const code of ['08001', '08004', '53300', '57P03', '25006', '58030', 'ECONNREFUSED']) {
    assert(isOutage(withCode(code)), code)
  }
})

test('a canceled statement or a deadlock may be retried, and is not an outage', () => {
  for (const code of ['40P01', '57014', '55P03']) {
    assert.deepEqual([isRetryable(withCode(code)), isOutage(withCode(code))], [true, false], code)
  }
})

test('codes of other libraries are not mistaken for those of PostgreSQL', () => {
  // An HTTP status, a Node error, and a PostgreSQL error about the statement itself.
  for (const code of ['404', '400', '5300', 'ERR_INVALID_ARG_TYPE', 'EPERM', '23505', '57000']) {
    assert.equal(isRetryable(withCode(code)), false, code)
  }
})

test('a lack of file descriptors in this process is not an outage of the database', () => {
  for (const code of ['EMFILE', 'ENFILE']) {
    assert.deepEqual([isOutOfDescriptors(withCode(code)), isOutage(withCode(code))], [true, false])
  }
})
