import { DAY_MS, timeMarks } from '../../parts/chart/chart-axis.ts'
import { ChartFrame, type ChartScale } from '../../parts/chart/ChartFrame.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { formatLocal, zonedFormat } from '../../parts/time/time.ts'
import { zoneOffsetMs } from '../../parts/time/time-zone.ts'
import classes from './ArrivalChart.module.css'
import type { Arrivals, Silence } from './silences.ts'

const LABEL_SPACE_PX = 90
const BAR_PX_MIN = 2

type ChartProps = { arrivals: Arrivals; silences: readonly Silence[]; summary: string }

/** Bars of received events. A line shows the period before, and silences are marked. */
export function ArrivalChart({ arrivals, silences, summary }: ChartProps) {
  const { bars, counts, previousCounts } = arrivals
  return (
    <ChartFrame
      barCount={bars.length}
      countMax={Math.max(...counts, ...previousCounts)}
      formatCount={(count) => COMPACT.format(count)}
      summary={summary}
      captionOf={(hovered) => (
        <figcaption className={`${classes.caption} soft numeric`}>
          {hovered === null ? <Legend /> : hoverText(arrivals, hovered)}
        </figcaption>
      )}
      plotOf={(scale) => plotOf(arrivals, silences, scale)}
    />
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

function plotOf(arrivals: Arrivals, silences: readonly Silence[], scale: ChartScale) {
  const { bars, counts, previousCounts } = arrivals
  const { leftPx, endPx, topPx, floorPx, barPx, heightOf } = scale
  const fromMs = Date.parse(bars[0] ?? arrivals.from)
  const toMs = Date.parse(arrivals.lastBarEnd)
  const pxOf = (ms: number) => leftPx + ((ms - fromMs) / (toMs - fromMs)) * (endPx - leftPx)
  const leftOf = (index: number) => Math.round(leftPx + index * barPx)
  const line = previousCounts
    .map((count, index) => `H${leftOf(index)}V${floorPx - heightOf(count)}H${leftOf(index + 1)}`)
    .join('')
  const { marks, stepMs } = timeMarks({ fromMs, toMs }, endPx - leftPx, {
    spacePx: LABEL_SPACE_PX,
    offsetOf: zoneOffsetMs,
  })
  return {
    behind: silences.map((silence) => (
      <rect
        key={silence.fromMs}
        className={classes.silence}
        data-silence
        x={pxOf(silence.fromMs)}
        y={topPx}
        width={pxOf(silence.toMs) - pxOf(silence.fromMs)}
        height={floorPx - topPx}
      />
    )),
    bars: bars.map((key, index) => ({
      key,
      leftPx: leftOf(index),
      widthPx: Math.max(BAR_PX_MIN, leftOf(index + 1) - leftOf(index) - 1),
      count: counts[index] ?? 0,
    })),
    inFront: <path className={classes.previous} d={`M${leftPx} ${floorPx}${line}`} />,
    labels: marks.map((ms) => ({ ms, middlePx: pxOf(ms), text: axisText(ms, stepMs) })),
  }
}

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const AXIS_DAY = zonedFormat({ month: 'short', day: 'numeric' })
const AXIS_CLOCK = zonedFormat({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

function axisText(ms: number, stepMs: number): string {
  const isDay = stepMs >= DAY_MS || (ms + zoneOffsetMs(ms)) % DAY_MS === 0
  return (isDay ? AXIS_DAY : AXIS_CLOCK)(ms)
}
