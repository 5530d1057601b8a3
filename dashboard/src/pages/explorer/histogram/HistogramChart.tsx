import { useComputedColorScheme } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useId } from 'react'
import { barAt, type BarCursor, barTimes, endsOf } from './bar-cursor.ts'
import type { Histogram } from '../event-queries.ts'
import { msOf, pxOf } from './histogram-chart.ts'
import classes from './Histogram.module.css'
import { HistogramBars } from './HistogramBars.tsx'
import { HistogramHover } from './HistogramHover.tsx'
import type { TimeWindow } from '../../../query/time-window.ts'
import { useBarCursor } from './use-bar-cursor.ts'
import { type Drag, useBrush } from './use-brush.ts'

type ChartProps = {
  histogram: Histogram
  timeWindow: TimeWindow
  timeZone: string
  onBrush: (fromMs: number, toMs: number) => void
  onZoomOut: () => void
}

/** The bars. A brushed period is enlarged immediately, before its own counts have loaded. */
export function HistogramChart(props: ChartProps) {
  const { histogram, timeWindow, timeZone, onBrush, onZoomOut } = props
  const scheme = useComputedColorScheme('light')
  const { ref, width } = useElementSize()
  const keyboard = useBarCursor({ histogram, timeWindow, onZoom: onBrush })
  const barsIn = ({ fromPx, toPx }: Drag): BarCursor => ({
    anchor: barAt(histogram, msOf(fromPx, timeWindow, width)),
    at: barAt(histogram, msOf(toPx, timeWindow, width)),
  })
  const {
    atPx,
    drag,
    props: pointerProps,
  } = useBrush({
    width,
    onStart: () => keyboard.release(),
    onBrush: (done) => {
      const { fromMs, toMs } = barTimes(histogram, barsIn(done), timeWindow)
      if (fromMs < toMs) onBrush(fromMs, toMs)
    },
  })
  const hintId = useId()
  const pxOfBars = (bars: BarCursor) => {
    const { fromMs, toMs } = barTimes(histogram, bars, timeWindow)
    return { fromPx: pxOf(fromMs, timeWindow, width), toPx: pxOf(toMs, timeWindow, width) }
  }
  const { cursor } = keyboard
  const linePx = cursor ? middleOf(pxOfBars({ anchor: cursor.at, at: cursor.at })) : atPx
  const isBrushed = drag !== null || (cursor !== null && cursor.anchor !== cursor.at)
  const isPointed = linePx !== null && isCounted(histogram, msOf(linePx, timeWindow, width))
  const pointed = isPointed ? barsIn({ fromPx: linePx, toPx: linePx }) : null
  const chosen = cursor ?? (drag ? barsIn(drag) : pointed)
  return (
    <div
      ref={ref}
      className={classes.chart}
      data-chart="histogram"
      {...keyboard.props}
      aria-describedby={hintId}
      {...pointerProps}
      onDoubleClick={onZoomOut}
    >
      <span id={hintId} hidden>
        {KEYS}
      </span>
      {width > 0 && (
        <HistogramBars
          key={timeZone}
          histogram={histogram}
          range={timeWindow}
          widthPx={width}
          scheme={scheme}
        />
      )}
      {isBrushed && chosen && <Brush {...pxOfBars(chosen)} />}
      {linePx !== null && <div className={classes.pointer} style={{ left: linePx }} />}
      {linePx !== null && chosen !== null && (
        <HistogramHover
          leftPx={linePx}
          ends={endsOf(chosen)}
          histogram={histogram}
          scheme={scheme}
          isOnLeft={linePx * 2 > width}
        />
      )}
    </div>
  )
}

const KEYS =
  'Use the arrow keys to move between bars, and hold Shift to select several. Enter zooms in, Escape clears the selection.'

function middleOf({ fromPx, toPx }: Drag): number {
  return (fromPx + toPx) / 2
}

/** False for a part of the period that the counts, which can be older, don't cover. */
function isCounted({ bars: [first], lastBarEnd }: Histogram, ms: number): boolean {
  return first !== undefined && ms >= Date.parse(first) && ms < Date.parse(lastBarEnd)
}

function Brush({ fromPx, toPx }: Drag) {
  return <div className={classes.brush} data-brush style={{ left: fromPx, width: toPx - fromPx }} />
}
