import 'uplot/dist/uPlot.min.css'
import { Text, useComputedColorScheme } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useEffect, useRef, useState } from 'react'
import uPlot from 'uplot'
import classes from './DayBars.module.css'
import { formatDay } from './utc-day.ts'

export type DayCount = { dayMs: number; count: number }

/** What is counted: "3 events" in a sentence, and short beside the axis. */
export type Measure = { words: (count: number) => string; short: (count: number) => string }

const HEIGHT_PX = 180

/** One bar a day of UTC. What a bar holds is said below it, and all of them to whoever cannot see it. */
export function DayBars({ days, measure }: { days: readonly DayCount[]; measure: Measure }) {
  const { ref: sized, width } = useElementSize()
  const host = useRef<HTMLDivElement>(null)
  const [hovered, setHovered] = useState<number | null>(null)
  const scheme = useComputedColorScheme('light')
  useEffect(() => {
    if (!host.current || width === 0) return undefined
    const plot = new uPlot(
      optionsOf(host.current, { width, short: measure.short, onHover: setHovered }),
      [days.map(({ dayMs }) => dayMs / 1_000), days.map(({ count }) => count)],
      host.current,
    )
    return () => plot.destroy()
    // The theme's colours are read when it is drawn.
  }, [days, width, scheme, measure])
  const day = hovered === null ? undefined : days[hovered]
  return (
    <figure className={classes.figure} ref={sized}>
      <div ref={host} className={classes.plot} role="img" aria-label={summaryOf(days, measure)} />
      <Text component="figcaption" size="sm" className="soft numeric">
        {day ? `${formatDay(day.dayMs)}: ${measure.words(day.count)}` : summaryOf(days, measure)}
      </Text>
    </figure>
  )
}

function summaryOf(days: readonly DayCount[], { words }: Measure): string {
  const total = days.reduce((sum, { count }) => sum + count, 0)
  const most = days.reduce<DayCount | null>(
    (best, day) => (best === null || day.count > best.count ? day : best),
    null,
  )
  if (total === 0 || most === null) return `Nothing in ${days.length} days`
  return `${words(total)} in ${days.length} days, most on ${formatDay(most.dayMs)}: ${words(most.count)}`
}

function optionsOf(
  host: HTMLElement,
  {
    width,
    short,
    onHover,
  }: { width: number; short: Measure['short']; onHover: (index: number | null) => void },
): uPlot.Options {
  const axis = {
    stroke: colorOf(host, 'var(--text-soft)'),
    font: "12px 'Inter Variable', system-ui, sans-serif",
    ticks: { show: false },
  }
  const grid = { stroke: colorOf(host, 'var(--hairline)'), width: 1 }
  const bars = uPlot.paths.bars?.({ size: [0.7, 48] })
  const bar = colorOf(host, 'var(--mantine-primary-color-filled)')
  return {
    width,
    height: HEIGHT_PX,
    legend: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
    // Half a day of room at both ends, where the first and the last bar stand.
    scales: {
      x: { range: (_plot, min, max) => [min - 43_200, max + 43_200] },
      y: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 64, size: 28, values: dayLabels },
      { ...axis, grid, size: 56, incrs: WHOLE_STEPS, values: (_plot, splits) => splits.map(short) },
    ],
    series: [
      {},
      {
        stroke: bar,
        fill: bar,
        ...(bars && { paths: bars }),
        points: { show: false },
      },
    ],
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor: { idx } }) => onHover(idx ?? null)] },
  }
}

/** There is no half of what is counted. */
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((factor) => factor * 10 ** power),
).flat()

const AXIS_DAY = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' })

function dayLabels(_plot: uPlot, splits: number[]): (string | null)[] {
  return splits.map((seconds) => (seconds % 86_400 === 0 ? AXIS_DAY.format(seconds * 1_000) : null))
}

/** A canvas knows no variables: the browser works them out on an element for us. */
function colorOf(host: HTMLElement, value: string): string {
  const probe = document.createElement('span')
  probe.style.color = value
  host.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
