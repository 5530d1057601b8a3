import { Text } from '@mantine/core'
import { DAY_MS, timeMarks } from './chart-axis.ts'
import { ChartFrame, type ChartScale } from './ChartFrame.tsx'
import { LANGUAGE } from '../text/language.ts'
import { formatDay } from '../time/utc-day.ts'

export type DayCount = { dayMs: number; count: number }

/** Formats a count: "3 events" for sentences, and a short form for the axis. */
export type Measure = { format: (count: number) => string; formatShort: (count: number) => string }

const LABEL_SPACE_PX = 64
const BAR = { ofDay: 0.7, pxMax: 48 }

/** One bar per UTC day. The hovered bar is described below the chart, and all bars to screen readers. */
export function DailyBarChart({ days, measure }: { days: readonly DayCount[]; measure: Measure }) {
  const summary = summaryOf(days, measure)
  const captionOf = (hovered: number | null) => {
    const day = hovered === null ? undefined : days[hovered]
    return (
      <Text component="figcaption" size="sm" className="soft numeric">
        {day ? `${formatDay(day.dayMs)}: ${measure.format(day.count)}` : summary}
      </Text>
    )
  }
  return (
    <ChartFrame
      barCount={days.length}
      countMax={Math.max(0, ...days.map(({ count }) => count))}
      formatCount={measure.formatShort}
      summary={summary}
      captionOf={captionOf}
      plotOf={(scale) => plotOf(days, scale)}
    />
  )
}

function plotOf(days: readonly DayCount[], { leftPx, barPx: dayPx }: ChartScale) {
  const middleOf = (index: number) => leftPx + (index + 0.5) * dayPx
  const widthPx = Math.max(1, Math.min(BAR.pxMax, Math.round(dayPx * BAR.ofDay)))
  const firstMs = days[0]?.dayMs ?? 0
  const range = { fromMs: firstMs, toMs: firstMs + (days.length - 1) * DAY_MS }
  const { marks } = timeMarks(range, (days.length - 1) * dayPx, {
    spacePx: Math.max(LABEL_SPACE_PX, dayPx),
    offsetOf: () => 0,
  })
  return {
    bars: days.map(({ dayMs, count }, index) => ({
      key: dayMs,
      leftPx: Math.round(middleOf(index) - widthPx / 2),
      widthPx,
      count,
    })),
    labels: marks.map((ms) => ({
      ms,
      middlePx: middleOf(Math.round((ms - firstMs) / DAY_MS)),
      text: AXIS_DAY.format(ms),
    })),
  }
}

const AXIS_DAY = new Intl.DateTimeFormat(LANGUAGE, {
  month: 'short',
  day: 'numeric',
  timeZone: 'UTC',
})

function summaryOf(days: readonly DayCount[], { format }: Measure): string {
  const total = days.reduce((sum, { count }) => sum + count, 0)
  const most = days.reduce<DayCount | null>(
    (best, day) => (best === null || day.count > best.count ? day : best),
    null,
  )
  if (total === 0 || most === null) return `None in ${days.length} days`
  return `${format(total)} in ${days.length} days, most on ${formatDay(most.dayMs)}: ${format(most.count)}`
}
