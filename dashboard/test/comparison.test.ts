import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeText, previousWindow } from '../src/pages/explorer/histogram/comparison.ts'
import { windowOf } from '../src/query/time-window.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
// A Wednesday, in the local time zone.
const NOW_MS = new Date(2026, 2, 18, 14, 30).getTime()

const compared = (range: string) => previousWindow(windowOf({ range }, NOW_MS))

test('a period is compared with the one just before, of the same length', () => {
  assert.deepEqual(compared('7d'), {
    fromMs: NOW_MS - 14 * DAY_MS,
    toMs: NOW_MS - 7 * DAY_MS,
    range: null,
    name: 'the previous 7 days',
  })
  assert.equal(compared('1h')?.name, 'the previous hour')
  assert.deepEqual(previousWindow({ fromMs: 5_000, toMs: 7_000, range: null }), {
    fromMs: 3_000,
    toMs: 5_000,
    range: null,
    name: 'the period before',
  })
})

test('a day or week that is not over is compared with the same part of the one before', () => {
  assert.deepEqual(compared('today'), {
    fromMs: new Date(2026, 2, 17).getTime(),
    toMs: new Date(2026, 2, 17, 14, 30).getTime(),
    range: null,
    name: 'the same time yesterday',
  })
  const week = windowOf({ range: 'thisWeek' }, NOW_MS)
  assert.equal(compared('thisWeek')?.fromMs, week.fromMs - 7 * DAY_MS)
  assert.equal(compared('thisWeek')?.toMs, NOW_MS - 7 * DAY_MS)
})

test('months are compared as a whole, and all time with nothing', () => {
  assert.deepEqual(compared('previousMonth'), {
    fromMs: new Date(2026, 0, 1).getTime(),
    toMs: new Date(2026, 1, 1).getTime(),
    range: null,
    name: 'the month before',
  })
  assert.equal(compared('yesterday')?.toMs, new Date(2026, 2, 17).getTime())
  assert.equal(compared('allTime'), null)
})

test('shows a change as a percentage, unless there was nothing before', () => {
  assert.equal(changeText(112, 100), '+12%')
  assert.equal(changeText(50, 100), '−50%')
  assert.equal(changeText(100, 100), '±0%')
  assert.equal(changeText(1_200, 0), '+1,200')
  assert.equal(changeText(10_001, 10_000), '+<1%')
  assert.equal(changeText(0, 3), '−100%')
})
