import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRfc3339 } from './rfc3339.ts'

test('parses a time with its offset, and truncates digits beyond the millisecond', () => {
  assert.equal(parseRfc3339('2026-03-01T12:00:00Z'), Date.UTC(2026, 2, 1, 12))
  assert.equal(parseRfc3339('2026-03-01t12:00:00.9999z'), Date.UTC(2026, 2, 1, 12, 0, 0, 999))
  assert.equal(parseRfc3339('2026-03-01T12:00:00.5+05:30'), Date.UTC(2026, 2, 1, 6, 30, 0, 500))
  assert.equal(parseRfc3339('2026-03-01T12:00:00-01:00'), Date.UTC(2026, 2, 1, 13))
  assert.equal(parseRfc3339('2024-02-29T00:00:00Z'), Date.UTC(2024, 1, 29))
  assert.equal(parseRfc3339('0001-01-01T00:00:00Z'), Date.parse('0001-01-01T00:00:00.000Z'))
})

test('rejects text that is not an RFC 3339 timestamp, without guessing', () => {
  const refused = [
    '2026-03-01',
    '2026-03-01T12:00:00',
    '2026-03-01 12:00:00Z',
    '2026-03-01T12:00:60Z',
    '2026-03-01T24:00:00Z',
    '2026-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-13-10T00:00:00Z',
    '2026-03-01T12:00:00+0530',
    '2026-03-01T12:00:00.Z',
    '2026-03-01T12:00:00.1234567890Z',
    '0000-01-01T00:00:00+01:00',
    '9999-12-31T23:59:59-01:00',
    '+02026-03-01T12:00:00Z',
    '',
  ]
  for (const text of refused) assert.equal(parseRfc3339(text), null, text)
})
