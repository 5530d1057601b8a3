import assert from 'node:assert/strict'
import { test } from 'node:test'

import { failureReason, isHeldByOldBackends } from './start-failure.ts'

test('reports the last fatal log line that our own probes did not cause, without its prefix', () => {
  const lines = [
    '2026-01-01 00:00:00.000 UTC [7] LOG:  starting PostgreSQL 18.4',
    '2026-01-01 00:00:00.000 UTC [7] FATAL:  could not create lock file: Permission denied',
    '2026-01-01 00:00:00.000 UTC [8] FATAL:  the database system is starting up',
    '2026-01-01 00:00:00.000 UTC [7] LOG:  database system is shut down',
  ]
  assert.equal(failureReason(lines), 'could not create lock file: Permission denied')
})

test('reports output from before the log exists if nothing fatal was logged', () => {
  const lines = ['postgres: could not find the database system', 'Expected to find it in "/d"']
  assert.equal(failureReason(lines), lines.join(' '))
  assert.equal(failureReason([]), '')
})

test('distinguishes leftover backends from other failures', () => {
  const held = 'FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use'
  assert(isHeldByOldBackends([held]))
  assert(isHeldByOldBackends(['FATAL:  lock file "postmaster.pid" already exists']))
  assert.equal(isHeldByOldBackends(['FATAL:  could not open file']), false)
})
