import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barTimes, cursorText, moveBar } from '../src/pages/explorer/histogram/bar-cursor.ts'

const HOUR_MS = 3_600_000
const START = Date.parse('2026-03-04T00:00:00.000Z')
const BARS = Array.from({ length: 24 }, (_, hour) => new Date(START + hour * HOUR_MS).toISOString())
const HISTOGRAM = {
  from: BARS[0] ?? '',
  to: new Date(START + 24 * HOUR_MS).toISOString(),
  bars: BARS,
  lastBarEnd: new Date(START + 24 * HOUR_MS).toISOString(),
  stepSeconds: 3_600,
  total: 48,
  isGrouped: true,
  series: [
    { value: 'auth', total: 24, counts: BARS.map(() => 1) },
    { value: null, total: 24, counts: BARS.map((_, hour) => (hour === 3 ? 0 : 1)) },
  ],
}

test('the arrow keys move between bars and stop at both ends', () => {
  const move = (at: number, key: string) =>
    moveBar({ anchor: at, at }, key, { count: 24, isExtending: false })
  assert.deepEqual(move(5, 'ArrowRight'), { anchor: 6, at: 6 })
  assert.deepEqual(move(0, 'ArrowLeft'), { anchor: 0, at: 0 })
  assert.deepEqual(move(23, 'ArrowRight'), { anchor: 23, at: 23 })
  assert.deepEqual(move(5, 'PageDown'), { anchor: 7, at: 7 })
  assert.deepEqual(move(5, 'Home'), { anchor: 0, at: 0 })
  assert.deepEqual(move(5, 'End'), { anchor: 23, at: 23 })
  assert.equal(move(5, 'ArrowUp'), null)
  assert.equal(moveBar({ anchor: 0, at: 0 }, 'End', { count: 0, isExtending: false }), null)
})

test('Shift extends the selection from the anchor in either direction', () => {
  const back = moveBar({ anchor: 5, at: 5 }, 'ArrowLeft', { count: 24, isExtending: true })
  assert.deepEqual(back, { anchor: 5, at: 4 })
  const shown = { fromMs: START, toMs: START + 24 * HOUR_MS, range: null }
  assert.deepEqual(barTimes(HISTOGRAM, { anchor: 5, at: 4 }, shown), {
    fromMs: START + 4 * HOUR_MS,
    toMs: START + 6 * HOUR_MS,
  })
})

test('a zoom stays within the period shown, even if the outer bars exceed it', () => {
  const shown = { fromMs: START + 60_000, toMs: START + 24 * HOUR_MS - 60_000, range: null }
  const { fromMs, toMs } = barTimes(HISTOGRAM, { anchor: 0, at: 23 }, shown)
  assert.deepEqual({ fromMs, toMs }, { fromMs: shown.fromMs, toMs: shown.toMs })
})

test('one bar is described by its time, count and series, and several by their number', () => {
  assert.match(cursorText(HISTOGRAM, { anchor: 2, at: 2 }), /: 2 events, auth 1, Other 1$/)
  assert.match(cursorText(HISTOGRAM, { anchor: 3, at: 3 }), /: 1 event, auth 1$/)
  assert.match(cursorText(HISTOGRAM, { anchor: 4, at: 2 }), /^3 bars, .+ – .+: 5 events$/)
})
