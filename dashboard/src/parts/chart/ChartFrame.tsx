import { useElementSize } from '@mantine/hooks'
import { type PointerEvent, type ReactNode, useState } from 'react'
import { countMarks } from './chart-axis.ts'
import classes from './ChartFrame.module.css'

const HEIGHT_PX = 180
const EDGE_PX = { left: 56, top: 8, right: 8, bottom: 28 } as const
const PLOT_HEIGHT_PX = HEIGHT_PX - EDGE_PX.top - EDGE_PX.bottom
const FLOOR_PX = EDGE_PX.top + PLOT_HEIGHT_PX
const COUNT_SPACE_PX = 34
const BAR_HEIGHT_PX_MIN = 2
/** At least half the width of a label such as "Nov 17". */
const HALF_LABEL_PX = 22

/** Where things are in the chart, in pixels. */
export type ChartScale = {
  leftPx: number
  endPx: number
  topPx: number
  floorPx: number
  /** The distance from one bar to the next. */
  barPx: number
  heightOf: (count: number) => number
}

type Bar = { key: string | number; leftPx: number; widthPx: number; count: number }
type TimeLabel = { ms: number; middlePx: number; text: string }

/** `behind` and `inFront` are relative to the bars. */
type Plot = { bars: Bar[]; labels: TimeLabel[]; behind?: ReactNode; inFront?: ReactNode }

type FrameProps = {
  barCount: number
  countMax: number
  formatCount: (count: number) => string
  /** For screen readers. */
  summary: string
  captionOf: (hovered: number | null) => ReactNode
  plotOf: (scale: ChartScale) => Plot
}

/** A chart with bars, an axis of counts and an axis of times. The caption describes the hovered bar. */
export function ChartFrame({ summary, captionOf, ...props }: FrameProps) {
  const { ref, width } = useElementSize()
  const [hovered, setHovered] = useState<number | null>(null)
  const { barCount } = props
  const barPx = Math.max(1, width - EDGE_PX.left - EDGE_PX.right) / Math.max(1, barCount)
  const hover = ({ clientX, currentTarget }: PointerEvent) => {
    const px = clientX - currentTarget.getBoundingClientRect().left - EDGE_PX.left
    setHovered(px < 0 || px >= barPx * barCount ? null : Math.floor(px / barPx))
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
        {width > 0 && barCount > 0 && <Drawing {...props} barPx={barPx} hovered={hovered} />}
      </div>
      {captionOf(hovered)}
    </figure>
  )
}

type DrawingProps = Omit<FrameProps, 'summary' | 'captionOf'> & {
  barPx: number
  hovered: number | null
}

function Drawing({ barCount, countMax, formatCount, plotOf, barPx, hovered }: DrawingProps) {
  const { left: leftPx, top: topPx } = EDGE_PX
  const endPx = leftPx + barCount * barPx
  const countsMarked = countMarks(Math.max(4, countMax), PLOT_HEIGHT_PX, COUNT_SPACE_PX)
  const top = countsMarked.at(-1) ?? 1
  const heightOf = (count: number) => Math.round((count / top) * PLOT_HEIGHT_PX)
  const scale = { leftPx, endPx, topPx, floorPx: FLOOR_PX, barPx, heightOf }
  const { bars, labels, behind, inFront } = plotOf(scale)
  return (
    <svg className={classes.bars} width={endPx + EDGE_PX.right} height={HEIGHT_PX}>
      {behind}
      {countsMarked.map((count) => (
        <g key={count}>
          <path
            className={classes.grid}
            d={`M${leftPx} ${FLOOR_PX - heightOf(count)}.5H${endPx}`}
          />
          <text x={leftPx - 6} y={FLOOR_PX - heightOf(count)} dy="0.35em" textAnchor="end">
            {formatCount(count)}
          </text>
        </g>
      ))}
      {bars.map((bar, index) => {
        const heightPx = bar.count === 0 ? 0 : Math.max(BAR_HEIGHT_PX_MIN, heightOf(bar.count))
        return (
          <rect
            key={bar.key}
            className={classes.bar}
            data-hovered={index === hovered || undefined}
            x={bar.leftPx}
            y={FLOOR_PX - heightPx}
            width={bar.widthPx}
            height={heightPx}
          />
        )
      })}
      {inFront}
      {labels.map(({ ms, middlePx, text }) => (
        <text
          key={ms}
          x={Math.min(middlePx, endPx + EDGE_PX.right - HALF_LABEL_PX)}
          y={HEIGHT_PX - 10}
          textAnchor="middle"
        >
          {text}
        </text>
      ))}
    </svg>
  )
}
