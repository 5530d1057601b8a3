import { useElementSize } from '@mantine/hooks'
import { type PointerEvent, useState } from 'react'
import { countMarks, DAY_MS, timeMarks } from '../../parts/chart-axis.ts'
import { formatCount } from '../../parts/format.ts'
import { formatLocal, zonedFormat } from '../../parts/time.ts'
import { zoneOffsetMs } from '../../parts/time-zone.ts'
import classes from './ArrivalChart.module.css'
import type { Arrivals, Silence } from './silences.ts'

const HEIGHT_PX = 180
const EDGE_PX = { left: 56, top: 8, right: 8, bottom: 28 } as const
const PLOT_HEIGHT_PX = HEIGHT_PX - EDGE_PX.top - EDGE_PX.bottom
const FLOOR_PX = EDGE_PX.top + PLOT_HEIGHT_PX
const SPACE_PX = { time: 90, count: 34 }
const BAR_PX_MIN = 2
/** At least half the width of a label such as "Nov 17". */
const HALF_LABEL_PX = 22

type ChartProps = { arrivals: Arrivals; silences: readonly Silence[]; summary: string }

/** Bars of received events. A line shows the period before, and silences are marked. */
export function ArrivalChart({ arrivals, silences, summary }: ChartProps) {
  const { ref, width } = useElementSize()
  const [hovered, setHovered] = useState<number | null>(null)
  const { bars } = arrivals
  const barPx = Math.max(1, width - EDGE_PX.left - EDGE_PX.right) / Math.max(1, bars.length)
  const hover = ({ clientX, currentTarget }: PointerEvent) => {
    const px = clientX - currentTarget.getBoundingClientRect().left - EDGE_PX.left
    setHovered(px < 0 || px >= barPx * bars.length ? null : Math.floor(px / barPx))
  }
  return (
    <figure className={classes.figure}>
      <div
        ref={ref}
        className={classes.plot}
        role="img"
        aria-label={summary}
        onPointerMove={hover}
        onPointerLeave={() => setHovered(null)}
      >
        {width > 0 && (
          <Plot arrivals={arrivals} silences={silences} barPx={barPx} hovered={hovered} />
        )}
      </div>
      <figcaption className={`${classes.caption} soft numeric`}>
        {hovered === null ? <Legend /> : hoverText(arrivals, hovered)}
      </figcaption>
    </figure>
  )
}

function Legend() {
  return (
    <>
      <i className={classes.barSwatch} /> Received
      <i className={classes.lineSwatch} /> Period before
      <i className={classes.silenceSwatch} /> Silence
    </>
  )
}

function hoverText({ bars, counts, previousCounts }: Arrivals, index: number): string {
  const at = formatLocal(Date.parse(bars[index] ?? ''), 'clock')
  return `${at}: ${formatCount(counts[index] ?? 0)} received, ${formatCount(previousCounts[index] ?? 0)} in the period before`
}

type PlotProps = Omit<ChartProps, 'summary'> & { barPx: number; hovered: number | null }

function Plot({ arrivals, silences, barPx, hovered }: PlotProps) {
  const { bars, lastBarEnd, counts, previousCounts } = arrivals
  const fromMs = Date.parse(bars[0] ?? arrivals.from)
  const toMs = Date.parse(lastBarEnd)
  const endPx = EDGE_PX.left + bars.length * barPx
  const pxOf = (ms: number) =>
    EDGE_PX.left + ((ms - fromMs) / (toMs - fromMs)) * (endPx - EDGE_PX.left)
  const countsMarked = countMarks(
    Math.max(4, ...counts, ...previousCounts),
    PLOT_HEIGHT_PX,
    SPACE_PX.count,
  )
  const top = countsMarked.at(-1) ?? 1
  const heightOf = (count: number) => Math.round((count / top) * PLOT_HEIGHT_PX)
  const leftOf = (index: number) => Math.round(EDGE_PX.left + index * barPx)
  const line = previousCounts
    .map((count, index) => `H${leftOf(index)}V${FLOOR_PX - heightOf(count)}H${leftOf(index + 1)}`)
    .join('')
  const { marks, stepMs } = timeMarks({ fromMs, toMs }, endPx - EDGE_PX.left, {
    spacePx: SPACE_PX.time,
    offsetOf: zoneOffsetMs,
  })
  return (
    <svg className={classes.bars} width={endPx + EDGE_PX.right} height={HEIGHT_PX}>
      {silences.map((silence) => (
        <rect
          key={silence.fromMs}
          className={classes.silence}
          data-silence
          x={pxOf(silence.fromMs)}
          y={EDGE_PX.top}
          width={pxOf(silence.toMs) - pxOf(silence.fromMs)}
          height={PLOT_HEIGHT_PX}
        />
      ))}
      {countsMarked.map((count) => (
        <g key={count}>
          <path
            className={classes.grid}
            d={`M${EDGE_PX.left} ${FLOOR_PX - heightOf(count)}.5H${endPx}`}
          />
          <text x={EDGE_PX.left - 6} y={FLOOR_PX - heightOf(count)} dy="0.35em" textAnchor="end">
            {COMPACT.format(count)}
          </text>
        </g>
      ))}
      {counts.map((count, index) => {
        const heightPx = count === 0 ? 0 : Math.max(BAR_PX_MIN, heightOf(count))
        return (
          <rect
            key={bars[index]}
            className={classes.bar}
            data-hovered={index === hovered || undefined}
            x={leftOf(index)}
            y={FLOOR_PX - heightPx}
            width={Math.max(BAR_PX_MIN, leftOf(index + 1) - leftOf(index) - 1)}
            height={heightPx}
          />
        )
      })}
      <path className={classes.previous} d={`M${EDGE_PX.left} ${FLOOR_PX}${line}`} />
      {marks.map((ms) => {
        const middlePx = Math.min(pxOf(ms), endPx + EDGE_PX.right - HALF_LABEL_PX)
        return <TimeLabel key={ms} ms={ms} stepMs={stepMs} middlePx={middlePx} />
      })}
    </svg>
  )
}

function TimeLabel({ ms, stepMs, middlePx }: { ms: number; stepMs: number; middlePx: number }) {
  return (
    <text x={middlePx} y={HEIGHT_PX - 10} textAnchor="middle">
      {(isDay(ms, stepMs) ? AXIS_DAY : AXIS_CLOCK)(ms)}
    </text>
  )
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const AXIS_DAY = zonedFormat({ month: 'short', day: 'numeric' })
const AXIS_CLOCK = zonedFormat({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

function isDay(ms: number, stepMs: number): boolean {
  return stepMs >= DAY_MS || (ms + zoneOffsetMs(ms)) % DAY_MS === 0
}
