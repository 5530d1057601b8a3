import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rangeAt } from './relative-range.ts'

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

test('today, yesterday and this week follow the calendar in UTC, and a week starts on Monday', () => {
  const nowMs = at('2026-03-04T05:06:07Z') // A Wednesday.
  assert.deepEqual(rangeAt('today', nowMs), {
    fromMs: at('2026-03-04T00:00:00Z'),
    toMs: nowMs + 1,
  })
  assert.deepEqual(rangeAt('yesterday', nowMs), {
    fromMs: at('2026-03-03T00:00:00Z'),
    toMs: at('2026-03-04T00:00:00Z'),
  })
  for (const day of ['2026-03-02T00:00:00Z', '2026-03-04T05:06:07Z', '2026-03-08T23:59:59Z']) {
    assert.equal(rangeAt('thisWeek', at(day)).fromMs, at('2026-03-02T00:00:00Z'), day)
  }
  // The range is never empty, not even at midnight.
  const { fromMs, toMs } = rangeAt('today', at('2026-03-02T00:00:00Z'))
  assert(fromMs < toMs)
})

test('every span ends now, and each is longer than the previous one', () => {
  const nowMs = at('2026-03-31T12:00:00Z')
  const ranges = (['15m', '1h', '24h', '7d', '30d', '90d'] as const).map((range) =>
    rangeAt(range, nowMs),
  )
  for (const { toMs } of ranges) assert.equal(toMs, nowMs)
  const starts = ranges.map(({ fromMs }) => fromMs)
  assert.deepEqual(
    starts,
    starts.toSorted((a, b) => b - a),
  )
  assert.equal(starts[2], at('2026-03-30T12:00:00Z'))
})
