import { countMarks, DAY_MS, timeMarks } from '../../../parts/chart/chart-axis.ts'
import { zonedFormat } from '../../../parts/time/time.ts'
import { zoneOffsetMs } from '../../../parts/time/time-zone.ts'
import type { Histogram } from '../event-queries.ts'

export const HEIGHT_PX = 152
/** Space for the axis labels. */
export const EDGE_PX = { left: 44, top: 8, right: 8, bottom: 24 } as const
const PLOT_HEIGHT_PX = HEIGHT_PX - EDGE_PX.top - EDGE_PX.bottom
const FLOOR_PX = EDGE_PX.top + PLOT_HEIGHT_PX
const GAP_PX = 1
const BAR_PX_MIN = 2
/** At least as wide as a character of a label. */
const LABEL_CHARACTER_PX = 6.5
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

/** A bar ends where the next one starts. */
export function barEndMs({ bars, lastBarEnd }: Histogram, index: number): number {
  return Date.parse(bars[index + 1] ?? lastBarEnd)
}

/** Returns one outline per series, and the marks of both axes, in the time zone that is shown. */
export function drawHistogram(histogram: Histogram, range: Range, widthPx: number) {
  const { bars, series } = histogram
  const shown = bars.flatMap((start, index) => {
    const startMs = Date.parse(start)
    const endMs = barEndMs(histogram, index)
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
  const stacks = shown.map(({ index }, place) =>
    stack(
      series.map(({ counts }) => counts[index] ?? 0),
      heightOf(sums[place] ?? 0),
    ),
  )
  const outlines = series.map((_, nth) =>
    shown
      .map(({ left, right }, place) => {
        const [bottom, top] = [stacks[place]?.[nth] ?? 0, stacks[place]?.[nth + 1] ?? 0]
        if (top === bottom) return ''
        return `M${left} ${FLOOR_PX - top}H${right}V${FLOOR_PX - bottom}H${left}Z`
      })
      .join(''),
  )
  const { marks, stepMs } = timeMarks(range, plotWidth(widthPx), {
    spacePx: SPACE_PX.time,
    offsetOf: zoneOffsetMs,
  })
  return {
    outlines,
    counts: countsMarked.map((count) => ({
      topPx: FLOOR_PX - heightOf(count),
      label: COMPACT.format(count),
    })),
    times: marks.map((ms) => {
      const label = timeLabel(ms, stepMs)
      const middleMax = widthPx - (label.length * LABEL_CHARACTER_PX) / 2
      return { leftPx: Math.min(pxOf(ms, range, widthPx), middleMax), label }
    }),
  }
}

/**
 * The edges between the parts of a bar, from bottom to top. A bar with events is never invisible, and
 * neither are its parts if there is room for all of them.
 */
function stack(counts: readonly number[], exactPx: number): number[] {
  const total = counts.reduce((sum, count) => sum + count, 0)
  const parts = counts.filter((count) => count > 0).length
  const heightPx = Math.max(BAR_PX_MIN, exactPx)
  const leastPx = Math.min(BAR_PX_MIN, Math.floor(heightPx / parts))
  let edgePx = 0
  const edges = counts.map((count) => {
    if (count > 0) edgePx += leastPx + (count / total) * (heightPx - parts * leastPx)
    return Math.round(edgePx)
  })
  return [0, ...edges]
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const DAY = zonedFormat({ month: 'short', day: 'numeric' })
const MONTH = zonedFormat({ month: 'short', year: 'numeric' })
const CLOCK = zonedFormat({
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const SECONDS = zonedFormat({
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

function timeLabel(ms: number, stepMs: number): string {
  // Several of these labels can be more than a year apart.
  if (stepMs >= 30 * DAY_MS) return MONTH(ms)
  if (stepMs >= DAY_MS) return DAY(ms)
  if (stepMs < MINUTE_MS) return SECONDS(ms)
  const isMidnight = (ms + zoneOffsetMs(ms)) % DAY_MS === 0
  return (isMidnight ? DAY : CLOCK)(ms)
}
