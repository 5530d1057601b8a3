import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawHistogram } from '../src/pages/explorer/histogram/histogram-chart.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const STEP_MS = 6 * HOUR_MS
const FIRST_MS = Date.parse('2026-10-17T00:00:00Z')

/** Events in the first and the last bar of 30 days that begin and end within those bars. */
function drawEnds({ fromMs, toMs }: { fromMs: number; toMs: number }): string {
  const bars: string[] = []
  for (let ms = FIRST_MS; ms < toMs; ms += STEP_MS) bars.push(new Date(ms).toISOString())
  const counts = bars.map((_, index) => (index === 0 || index === bars.length - 1 ? 25 : 0))
  const histogram = {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    bars,
    stepSeconds: STEP_MS / 1_000,
    total: 50,
    series: [{ value: 'auth', total: 50, counts }],
  }
  return drawHistogram(histogram, { fromMs, toMs }, 1_200).outlines[0] ?? ''
}

test('a bar with events is drawn even if only part of it is in the period', () => {
  const outline = drawEnds({
    fromMs: FIRST_MS + STEP_MS - 60_000,
    toMs: FIRST_MS + 30 * DAY_MS + 60_000,
  })
  const edges = [...outline.matchAll(/M(\d+) \d+H(\d+)/g)].map(([, left, right]) => ({
    left: Number(left),
    right: Number(right),
  }))
  assert.equal(edges.length, 2, outline)
  for (const { left, right } of edges) {
    assert(right - left >= 2 && left >= 44 && right <= 1_192, outline)
  }
})

test('bars outside the period are not drawn', () => {
  const fromMs = FIRST_MS + STEP_MS
  assert.doesNotMatch(drawEnds({ fromMs, toMs: FIRST_MS + 30 * DAY_MS }), /M.*M/)
})
