import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rangeAt, VIEW_RANGES } from './relative-range.ts'

const at = (text: string) => Date.parse(text)

test('the previous month follows the calendar, including across a year', () => {
  assert.deepEqual(rangeAt('previousMonth', at('2026-03-31T23:59:59.999Z')), {
    fromMs: at('2026-02-01T00:00:00Z'),
    toMs: at('2026-03-01T00:00:00Z'),
  })
  assert.deepEqual(rangeAt('previousMonth', at('2026-01-01T00:00:00Z')), {
    fromMs: at('2025-12-01T00:00:00Z'),
    toMs: at('2026-01-01T00:00:00Z'),
  })
})

test('every other range ends now, and each is longer than the previous one', () => {
  const nowMs = at('2026-03-31T12:00:00Z')
  const ranges = VIEW_RANGES.map((range) => rangeAt(range, nowMs))
  for (const { toMs } of ranges) assert.equal(toMs, nowMs)
  const starts = ranges.map(({ fromMs }) => fromMs)
  assert.deepEqual(
    starts,
    starts.toSorted((a, b) => b - a),
  )
  assert.equal(starts[2], at('2026-03-30T12:00:00Z'))
})
