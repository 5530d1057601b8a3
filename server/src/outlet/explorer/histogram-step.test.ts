import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { DAY_MS } from '../../platform/time/time-units.ts'
import { barStartMs, chooseStepS, listBars } from './histogram-step.ts'

test('every range has a reasonable number of bars', () => {
  const lengths = fc.oneof(
    fc.integer({ min: 1, max: 4_000_000 }),
    fc.integer({ min: 1, max: 40_000 * DAY_MS }),
  )
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), lengths, (fromMs, lengthMs) => {
      const range = { fromMs, toMs: fromMs + lengthMs }
      const stepS = chooseStepS(range)
      const bars = listBars(range, stepS)
      assert(bars.length <= 121)
      // The step after two days is a week.
      const barsMin = lengthMs <= 240 * DAY_MS ? 40 : 30
      assert(lengthMs < 60_000 || bars.length >= barsMin)
      assert((bars[0] ?? 0) <= fromMs && (bars.at(-1) ?? 0) < range.toMs)
      assert.equal(barStartMs(fromMs, stepS), bars[0])
    }),
  )
})

test('common ranges have the expected steps', () => {
  const stepOf = (lengthMs: number) => chooseStepS({ fromMs: 0, toMs: lengthMs })
  assert.equal(stepOf(3_600_000), 30)
  assert.equal(stepOf(DAY_MS), 900)
  assert.equal(stepOf(7 * DAY_MS), 7_200)
  assert.equal(stepOf(30 * DAY_MS), 21_600)
  assert.equal(stepOf(90 * DAY_MS), 86_400)
})

test('weekly bars start on Mondays', () => {
  const stepS = chooseStepS({ fromMs: 0, toMs: 700 * DAY_MS })
  assert.equal(stepS, 7 * 86_400)
  for (const barMs of listBars({ fromMs: 0, toMs: 100 * DAY_MS }, stepS)) {
    assert.equal(new Date(barMs).getUTCDay(), 1)
  }
})
