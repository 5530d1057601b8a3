import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countMarks, timeMarks } from '../src/parts/chart/chart-axis.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

test('count labels are whole numbers from 0 and don’t overlap', () => {
  assert.deepEqual(countMarks(1, 84, 34), [0, 1])
  assert.deepEqual(countMarks(18, 84, 34), [0, 10, 20])
  assert.deepEqual(countMarks(1_000, 84, 34), [0, 500, 1_000])
})

test('the highest grid line is never below the largest count', () => {
  for (const most of [1, 3, 21, 25, 99, 101, 61_000, 7_654_321, 8e12]) {
    const marks = countMarks(most, 84, 28)
    assert((marks.at(-1) ?? 0) >= most, `${most}: ${marks.join()}`)
    assert(marks.length >= 2 && marks.length <= 4, `${most}: ${marks.join()}`)
  }
})

test('time labels are full local hours or days, even across a clock change', () => {
  const zone = process.env.TZ
  process.env.TZ = 'Europe/Berlin'
  const offsetOf = (ms: number) => new Date(ms).getTimezoneOffset() * -60_000
  try {
    // The clock goes back in the night to the 25th.
    const fromMs = Date.parse('2026-10-24T10:00:00Z')
    const range = { fromMs, toMs: fromMs + 2 * DAY_MS }
    const { stepMs, marks } = timeMarks(range, 480, { spacePx: 90, offsetOf })
    assert.equal(stepMs, 12 * HOUR_MS)
    assert.deepEqual(
      marks.map((ms) => new Date(ms).toISOString()),
      [
        '2026-10-24T10:00:00.000Z',
        '2026-10-24T22:00:00.000Z',
        '2026-10-25T11:00:00.000Z',
        '2026-10-25T23:00:00.000Z',
      ],
    )
  } finally {
    if (zone === undefined) delete process.env.TZ
    else process.env.TZ = zone
  }
})

test('time labels lie within the period and don’t overlap, whatever its length', () => {
  for (const spanMs of [5, 900, HOUR_MS, 36 * HOUR_MS, 90 * DAY_MS, 9_000 * 365 * DAY_MS]) {
    for (const widthPx of [1, 300, 3_000]) {
      const range = { fromMs: 1_790_000_123_456, toMs: 1_790_000_123_456 + spanMs }
      const { marks } = timeMarks(range, widthPx, { spacePx: 90, offsetOf: () => 0 })
      assert(marks.length <= widthPx / 90 + 1, `${marks.length} marks on ${widthPx} px`)
      assert(marks.every((ms) => ms >= range.fromMs && ms <= range.toMs))
    }
  }
})
