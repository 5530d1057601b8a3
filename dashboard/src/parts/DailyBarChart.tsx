import { Text } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { type PointerEvent, useState } from 'react'
import { countMarks, DAY_MS, timeMarks } from './chart-axis.ts'
import classes from './DailyBarChart.module.css'
import { LANGUAGE } from './language.ts'
import { formatDay } from './utc-day.ts'

export type DayCount = { dayMs: number; count: number }

/** Formats a count: "3 events" for sentences, and a short form for the axis. */
export type Measure = { format: (count: number) => string; formatShort: (count: number) => string }

const HEIGHT_PX = 180
const EDGE_PX = { left: 56, top: 8, right: 8, bottom: 28 } as const
const PLOT_HEIGHT_PX = HEIGHT_PX - EDGE_PX.top - EDGE_PX.bottom
const FLOOR_PX = EDGE_PX.top + PLOT_HEIGHT_PX
const SPACE_PX = { day: 64, count: 34 }
const BAR = { ofDay: 0.7, pxMax: 48, heightPxMin: 2 }
/** At least half the width of a label such as "Nov 17". */
const HALF_LABEL_PX = 22

/** One bar per UTC day. The hovered bar is described below the chart, and all bars to screen readers. */
export function DailyBarChart({ days, measure }: { days: readonly DayCount[]; measure: Measure }) {
  const { ref, width } = useElementSize()
  const [hovered, setHovered] = useState<number | null>(null)
  const day = hovered === null ? undefined : days[hovered]
  const dayPx = Math.max(1, width - EDGE_PX.left - EDGE_PX.right) / Math.max(1, days.length)
  const hover = ({ clientX, currentTarget }: PointerEvent) => {
    const px = clientX - currentTarget.getBoundingClientRect().left - EDGE_PX.left
    setHovered(px < 0 ? null : Math.floor(px / dayPx))
  }
  return (
    <figure className={classes.figure}>
      <div
        ref={ref}
        className={classes.plot}
        role="img"
        aria-label={summaryOf(days, measure)}
        onPointerMove={hover}
        onPointerLeave={() => setHovered(null)}
      >
        {width > 0 && days.length > 0 && (
          <Bars days={days} measure={measure} dayPx={dayPx} hovered={hovered} />
        )}
      </div>
      <Text component="figcaption" size="sm" className="soft numeric">
        {day ? `${formatDay(day.dayMs)}: ${measure.format(day.count)}` : summaryOf(days, measure)}
      </Text>
    </figure>
  )
}

type BarsProps = {
  days: readonly DayCount[]
  measure: Measure
  dayPx: number
  hovered: number | null
}

function Bars({ days, measure, dayPx, hovered }: BarsProps) {
  const endPx = EDGE_PX.left + days.length * dayPx
  const most = Math.max(4, ...days.map(({ count }) => count))
  const countsMarked = countMarks(most, PLOT_HEIGHT_PX, SPACE_PX.count)
  const top = countsMarked.at(-1) ?? most
  const heightOf = (count: number) => Math.round((count / top) * PLOT_HEIGHT_PX)
  const middleOf = (index: number) => EDGE_PX.left + (index + 0.5) * dayPx
  const barPx = Math.max(1, Math.min(BAR.pxMax, Math.round(dayPx * BAR.ofDay)))
  const firstMs = days[0]?.dayMs ?? 0
  const range = { fromMs: firstMs, toMs: firstMs + (days.length - 1) * DAY_MS }
  const { marks } = timeMarks(range, (days.length - 1) * dayPx, {
    spacePx: Math.max(SPACE_PX.day, dayPx),
    offsetOf: () => 0,
  })
  return (
    <svg className={classes.bars} width={endPx + EDGE_PX.right} height={HEIGHT_PX}>
      {countsMarked.map((count) => (
        <g key={count}>
          <path
            className={classes.grid}
            d={`M${EDGE_PX.left} ${FLOOR_PX - heightOf(count)}.5H${endPx}`}
          />
          <text x={EDGE_PX.left - 6} y={FLOOR_PX - heightOf(count)} dy="0.35em" textAnchor="end">
            {measure.formatShort(count)}
          </text>
        </g>
      ))}
      {days.map(({ dayMs, count }, index) => {
        const heightPx = count === 0 ? 0 : Math.max(BAR.heightPxMin, heightOf(count))
        return (
          <rect
            key={dayMs}
            className={classes.bar}
            data-hovered={index === hovered || undefined}
            x={Math.round(middleOf(index) - barPx / 2)}
            y={FLOOR_PX - heightPx}
            width={barPx}
            height={heightPx}
          />
        )
      })}
      {marks.map((ms) => (
        <text
          key={ms}
          x={Math.min(
            middleOf(Math.round((ms - firstMs) / DAY_MS)),
            endPx + EDGE_PX.right - HALF_LABEL_PX,
          )}
          y={HEIGHT_PX - 10}
          textAnchor="middle"
        >
          {AXIS_DAY.format(ms)}
        </text>
      ))}
    </svg>
  )
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
