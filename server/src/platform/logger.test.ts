import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeError } from './logger.ts'

test('logs an error with its message, code and cause, but without what a library attached', () => {
  const attached = { client: { password: 'hidden' }, detail: 'Key (email)=(ana@example.com)' }
  const cause = Object.assign(new Error('connection reset'), { code: 'ECONNRESET', ...attached })
  const error = Object.assign(new Error('no reply', { cause }), { code: '08006', ...attached })
  for (const logged of [error, new AggregateError([error], 'all failed')]) {
    const text = JSON.stringify(describeError(logged))
    assert.match(text, /no reply: connection reset/)
    assert.match(text, /"code":"08006"/)
    assert.doesNotMatch(text, /hidden|ana@/)
  }
})

test('logs a thrown value that is not an error as text', () => {
  assert.equal(describeError('gone'), 'gone')
})
