import uPlot from 'uplot'
import type { Histogram } from './event-queries.ts'

const HEIGHT_PX = 116
const BRUSH_PX_MIN = 4
const AXIS_PX = { x: 24, y: 44 }
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

export type Scheme = 'light' | 'dark'

/** Kinds, not states: none is the green, yellow or red of a status. The last is for all others. */
const COLORS: Record<Scheme, readonly string[]> = {
  light: [
    '#4a74d9',
    '#2f9e9a',
    '#d49a2a',
    '#8a63c9',
    '#c9628f',
    '#8a9a3b',
    '#58a6d6',
    '#a5724e',
    '#a7aebb',
  ],
  dark: [
    '#6d93f0',
    '#4cbcb5',
    '#e0b050',
    '#a887e0',
    '#de83a9',
    '#a9b85c',
    '#7cc0ea',
    '#c4936d',
    '#6b7280',
  ],
}
const LINES: Record<Scheme, { text: string; grid: string }> = {
  light: { text: '#5a6272', grid: '#e6e8ee' },
  dark: { text: '#9aa3b5', grid: '#2b2f38' },
}

export function colorOf(scheme: Scheme, index: number, value: string | null): string {
  const colors = COLORS[scheme]
  return colors[value === null ? colors.length - 1 : index % colors.length] ?? '#888888'
}

export type ChartEvents = {
  /** The range that is shown, also before its counts have come. */
  range: () => { fromMs: number; toMs: number }
  onBrush: (fromMs: number, toMs: number) => void
  onZoomOut: () => void
  /** Where the pointer is, and at which time. */
  onHover: (at: { leftPx: number; ms: number } | null) => void
}

export function createChart(
  place: HTMLElement,
  histogram: Histogram,
  { scheme, events }: { scheme: Scheme; events: ChartEvents },
): uPlot {
  const { series } = histogram
  const drawn = series.map(({ value }, index) => ({ fill: colorOf(scheme, index, value) }))
  const options: uPlot.Options = {
    width: Math.max(1, place.clientWidth),
    height: HEIGHT_PX,
    ms: 1,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false },
      bind: { dblclick: () => () => (events.onZoomOut(), null) },
    },
    scales: {
      x: { time: true, range: () => [events.range().fromMs, events.range().toMs] },
      y: { range: (_chart, _least, most) => [0, Math.max(1, most ?? 1)] },
    },
    axes: axesOf(scheme),
    // Sums lie behind each other, the largest first.
    series: [{}, ...drawn.toReversed().map(barSeries)],
    hooks: { setSelect: [(chart) => brush(chart, events)], setCursor: [(c) => hover(c, events)] },
  }
  return new uPlot(options, stack(histogram), place)
}

const bars = uPlot.paths.bars?.({ size: [1, Number.POSITIVE_INFINITY], align: 1, gap: 1 })

function barSeries({ fill }: { fill: string }): uPlot.Series {
  return { fill, width: 0, points: { show: false }, ...(bars && { paths: bars }) }
}

/** Times, then for each series the sum of it and all before it, the last one first. */
export function stack({ bars: starts, series }: Histogram): uPlot.AlignedData {
  const sums: number[][] = []
  let below: readonly number[] = starts.map(() => 0)
  for (const { counts } of series) {
    const sum = below.map((count, index) => count + (counts[index] ?? 0))
    sums.unshift(sum)
    below = sum
  }
  return [starts.map((start) => Date.parse(start)), ...sums]
}

function brush(chart: uPlot, { onBrush }: ChartEvents): void {
  const { left, width } = chart.select
  if (width < BRUSH_PX_MIN) return
  const fromMs = chart.posToVal(left, 'x')
  const toMs = chart.posToVal(left + width, 'x')
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  // Nobody aims at a millisecond in an hour.
  const unitMs = toMs - fromMs > MINUTE_MS ? 1_000 : 1
  onBrush(Math.floor(fromMs / unitMs) * unitMs, Math.ceil(toMs / unitMs) * unitMs)
}

function hover(chart: uPlot, { onHover }: ChartEvents): void {
  const { left = -1 } = chart.cursor
  onHover(left < 0 ? null : { leftPx: left + AXIS_PX.y, ms: chart.posToVal(left, 'x') })
}

function axesOf(scheme: Scheme): uPlot.Axis[] {
  const { text, grid } = LINES[scheme]
  const font = "11px 'Inter Variable', system-ui, sans-serif"
  const common = { stroke: text, font, ticks: { show: false } }
  return [
    {
      ...common,
      size: AXIS_PX.x,
      space: 90,
      gap: 4,
      grid: { show: false },
      values: (_chart, splits, _axis, _space, stepMs) => splits.map((ms) => timeLabel(ms, stepMs)),
    },
    {
      ...common,
      size: AXIS_PX.y,
      space: 34,
      gap: 6,
      incrs: WHOLE_STEPS,
      grid: { stroke: grid, width: 1 },
      values: (_chart, splits) => splits.map((count) => COMPACT.format(count)),
    },
  ]
}

/** There are no halves of events. */
const WHOLE_STEPS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((n) => n * 10 ** power),
).flat()

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const DAY = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' })
const CLOCK = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const SECONDS = new Intl.DateTimeFormat('en', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})

function timeLabel(ms: number, stepMs: number): string {
  if (stepMs >= DAY_MS) return DAY.format(ms)
  if (stepMs < MINUTE_MS) return SECONDS.format(ms)
  const clock = CLOCK.format(ms)
  return clock === '00:00' ? DAY.format(ms) : clock
}
