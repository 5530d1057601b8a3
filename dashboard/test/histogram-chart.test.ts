import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawHistogram } from '../src/pages/explorer/histogram/histogram-chart.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const STEP_MS = 6 * HOUR_MS
const FIRST_MS = Date.parse('2026-10-17T00:00:00Z')

type Period = { fromMs: number; toMs: number }

/** Events in the first and the last bar of 30 days that begin and end within those bars. */
function drawEnds(period: Period, ends: readonly [number, number] = [25, 25]): string {
  return draw(period, ends).outlines[0] ?? ''
}

function draw({ fromMs, toMs }: Period, ends: readonly [number, number], widthPx = 1_200) {
  const bars: string[] = []
  for (let ms = FIRST_MS; ms < toMs; ms += STEP_MS) bars.push(new Date(ms).toISOString())
  const counts = bars.map((_, index) =>
    index === 0 ? ends[0] : index === bars.length - 1 ? ends[1] : 0,
  )
  const histogram = {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    bars,
    lastBarEnd: new Date(FIRST_MS + bars.length * STEP_MS).toISOString(),
    stepSeconds: STEP_MS / 1_000,
    total: 50,
    isGrouped: true,
    series: [{ value: 'auth', total: 50, counts }],
  }
  return drawHistogram(histogram, { fromMs, toMs }, widthPx)
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

test('a bar with a single event is visible next to a bar with many', () => {
  const outline = drawEnds({ fromMs: FIRST_MS, toMs: FIRST_MS + 30 * DAY_MS }, [1, 50_000])
  const heights = [...outline.matchAll(/ (\d+)H\d+V(\d+)/g)].map(
    ([, top, floor]) => Number(floor) - Number(top),
  )
  assert.equal(heights.length, 2, outline)
  assert((heights[0] ?? 0) >= 2 && (heights[1] ?? 0) >= 100, outline)
})

test('no time label is cut at the end of the axis', () => {
  for (const widthPx of [320, 1_200]) {
    for (let hours = 0; hours < 15 * 24; hours += 3) {
      const toMs = FIRST_MS + 30 * DAY_MS + hours * HOUR_MS
      for (const { leftPx, label } of draw({ fromMs: FIRST_MS, toMs }, [1, 1], widthPx).times) {
        assert(leftPx + label.length * 3 <= widthPx, `${label} at ${leftPx} of ${widthPx} px`)
      }
    }
  }
})

test('bars outside the period are not drawn', () => {
  const fromMs = FIRST_MS + STEP_MS
  assert.doesNotMatch(drawEnds({ fromMs, toMs: FIRST_MS + 30 * DAY_MS }), /M.*M/)
})
