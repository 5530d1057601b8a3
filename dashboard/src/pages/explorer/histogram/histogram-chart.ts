import { countMarks, DAY_MS, timeMarks } from '../../../parts/chart-axis.ts'
import { LANGUAGE } from '../../../parts/language.ts'
import type { Histogram } from '../event-queries.ts'

export const HEIGHT_PX = 116
/** Space for the axis labels. */
export const EDGE_PX = { left: 44, top: 8, right: 8, bottom: 24 } as const
const PLOT_HEIGHT_PX = HEIGHT_PX - EDGE_PX.top - EDGE_PX.bottom
const FLOOR_PX = EDGE_PX.top + PLOT_HEIGHT_PX
const GAP_PX = 1
const BAR_PX_MIN = 2
const SPACE_PX = { time: 90, count: 28 }
const MINUTE_MS = 60_000

/** The period shown, which can be newer than the counts. */
export type Range = { fromMs: number; toMs: number }

export function pxOf(ms: number, { fromMs, toMs }: Range, widthPx: number): number {
  return EDGE_PX.left + ((ms - fromMs) / (toMs - fromMs)) * plotWidth(widthPx)
}

export function msOf(px: number, { fromMs, toMs }: Range, widthPx: number): number {
  return fromMs + ((px - EDGE_PX.left) / plotWidth(widthPx)) * (toMs - fromMs)
}

function plotWidth(widthPx: number): number {
  return Math.max(1, widthPx - EDGE_PX.left - EDGE_PX.right)
}

/** Returns one outline per series, and the marks of both axes. */
export function drawHistogram(
  { bars, stepSeconds, series }: Histogram,
  range: Range,
  widthPx: number,
) {
  const shown = bars.flatMap((start, index) => {
    const startMs = Date.parse(start)
    const endMs = startMs + stepSeconds * 1_000
    // While a brushed period loads, the bars are still those of the previous, longer period.
    if (endMs <= range.fromMs || startMs >= range.toMs) return []
    const startPx = Math.max(EDGE_PX.left, pxOf(startMs, range, widthPx))
    const endPx = Math.min(widthPx - EDGE_PX.right, pxOf(endMs, range, widthPx)) - GAP_PX
    // If only minutes of an outer bar are within the period, it still gets the minimum width.
    const leftMax = widthPx - EDGE_PX.right - BAR_PX_MIN
    const left = Math.min(Math.round(startPx), leftMax)
    return { index, left, right: Math.max(Math.round(endPx), left + BAR_PX_MIN) }
  })
  const sums = shown.map(({ index }) =>
    series.reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0),
  )
  const countsMarked = countMarks(Math.max(1, ...sums), PLOT_HEIGHT_PX, SPACE_PX.count)
  const top = countsMarked.at(-1) ?? 1
  const heightOf = (count: number) => Math.round((count / top) * PLOT_HEIGHT_PX)
  const below = shown.map(() => 0)
  const outlines = series.map(({ counts }) =>
    shown
      .map(({ index, left, right }, place) => {
        const count = counts[index] ?? 0
        if (count === 0) return ''
        const bottom = below[place] ?? 0
        below[place] = bottom + count
        const topPx = FLOOR_PX - heightOf(bottom + count)
        const bottomPx = FLOOR_PX - heightOf(bottom)
        return `M${left} ${topPx}H${right}V${bottomPx}H${left}Z`
      })
      .join(''),
  )
  const { marks, stepMs } = timeMarks(range, plotWidth(widthPx), { spacePx: SPACE_PX.time })
  return {
    outlines,
    counts: countsMarked.map((count) => ({
      topPx: FLOOR_PX - heightOf(count),
      label: COMPACT.format(count),
    })),
    times: marks.map((ms) => ({ leftPx: pxOf(ms, range, widthPx), label: timeLabel(ms, stepMs) })),
  }
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const DAY = new Intl.DateTimeFormat(LANGUAGE, { month: 'short', day: 'numeric' })
const CLOCK = new Intl.DateTimeFormat(LANGUAGE, {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const SECONDS = new Intl.DateTimeFormat(LANGUAGE, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

function timeLabel(ms: number, stepMs: number): string {
  if (stepMs >= DAY_MS) return DAY.format(ms)
  if (stepMs < MINUTE_MS) return SECONDS.format(ms)
  const at = new Date(ms)
  const isMidnight = at.getHours() === 0 && at.getMinutes() === 0
  return (isMidnight ? DAY : CLOCK).format(at)
}

/** The period between two positions, rounded to seconds if it is longer than a minute. */
export function brushedTime(fromPx: number, toPx: number, range: Range, widthPx: number): Range {
  const fromMs = msOf(Math.min(fromPx, toPx), range, widthPx)
  const toMs = msOf(Math.max(fromPx, toPx), range, widthPx)
  const unitMs = toMs - fromMs > MINUTE_MS ? 1_000 : 1
  return {
    fromMs: Math.floor(fromMs / unitMs) * unitMs,
    toMs: Math.ceil(toMs / unitMs) * unitMs,
  }
}
