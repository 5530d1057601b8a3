import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromInputTime, toInputTime } from '../src/parts/time/input-time.ts'

test('a time that is formatted can be entered again', () => {
  const at = '2026-03-17T14:30:05.000Z'
  assert.equal(fromInputTime(toInputTime(at)), at)
})

test('seconds, the time of day and the T of pasted times are optional', () => {
  const texts = [
    '2026-03-17',
    '2026-03-17 00:00',
    ' 2026-03-17T00:00:00 ',
    '2026-03-17 00:00:00.000',
  ]
  assert.equal(new Set(texts.map(fromInputTime)).size, 1)
  assert.notEqual(fromInputTime('2026-03-17'), null)
})

test('what is not a time is refused', () => {
  const texts = [
    '',
    'now',
    '2026',
    '2026-02-30',
    '2026-13-01',
    '2026-03-17 25:00',
    '17.3.2026 10:00',
  ]
  for (const text of texts) assert.equal(fromInputTime(text), null, text)
})
