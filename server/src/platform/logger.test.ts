import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeError, readableLine } from './logger.ts'

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

test('a text in the log cannot drive a terminal or add a line', () => {
  const text = '\r\u001B[2K\u009B\u202E\n12:00 info ok'
  const entry = {
    level: 50,
    time: '2026-01-01T00:00:00.000Z',
    event: 'a',
    reason: text,
    list: [text],
  }
  const line = readableLine(JSON.stringify({ ...entry, [text]: text, msg: text }))
  assert.match(line, /^00:00:00\.000 error a [^\p{Cc}\u202E]+\n$/u)
})
