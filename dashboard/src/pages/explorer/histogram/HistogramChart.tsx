import { useComputedColorScheme } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useId } from 'react'
import { type BarCursor, barTimes, endsOf } from './bar-cursor.ts'
import type { Histogram } from '../event-queries.ts'
import { msOf, pxOf } from './histogram-chart.ts'
import classes from './Histogram.module.css'
import { HistogramBars } from './HistogramBars.tsx'
import { HistogramHover } from './HistogramHover.tsx'
import type { TimeWindow } from '../../../query/time-window.ts'
import { useBarCursor } from './use-bar-cursor.ts'
import { useBrush } from './use-brush.ts'

type ChartProps = {
  histogram: Histogram
  timeWindow: TimeWindow
  onBrush: (fromMs: number, toMs: number) => void
  onZoomOut: () => void
}

/** The bars. A brushed period is enlarged immediately, before its own counts have loaded. */
export function HistogramChart({ histogram, timeWindow, onBrush, onZoomOut }: ChartProps) {
  const scheme = useComputedColorScheme('light')
  const { ref, width } = useElementSize()
  const keyboard = useBarCursor({ histogram, timeWindow, onZoom: onBrush })
  const onStart = () => keyboard.release()
  const { atPx, brush, props: pointerProps } = useBrush({ timeWindow, width, onStart, onBrush })
  const hintId = useId()
  const pxOfBars = (cursor: BarCursor) => {
    const { fromMs, toMs } = barTimes(histogram, cursor, timeWindow)
    return { fromPx: pxOf(fromMs, timeWindow, width), toPx: pxOf(toMs, timeWindow, width) }
  }
  const { cursor } = keyboard
  const chosen = cursor && cursor.anchor !== cursor.at ? pxOfBars(cursor) : brush
  const linePx = cursor ? middleOf(pxOfBars({ anchor: cursor.at, at: cursor.at })) : atPx
  const index = linePx === null ? null : barAt(msOf(linePx, timeWindow, width), histogram)
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
        <HistogramBars histogram={histogram} range={timeWindow} widthPx={width} scheme={scheme} />
      )}
      {chosen && (
        <div
          className={classes.brush}
          style={{
            left: Math.min(chosen.fromPx, chosen.toPx),
            width: Math.abs(chosen.toPx - chosen.fromPx),
          }}
        />
      )}
      {linePx !== null && <div className={classes.pointer} style={{ left: linePx }} />}
      {linePx !== null && index !== null && (
        <HistogramHover
          leftPx={linePx}
          ends={cursor ? endsOf(cursor) : [index, index]}
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

function middleOf({ fromPx, toPx }: { fromPx: number; toPx: number }): number {
  return (fromPx + toPx) / 2
}

function barAt(ms: number, { bars, stepSeconds }: Histogram): number | null {
  const first = bars[0]
  if (first === undefined) return null
  const index = Math.floor((ms - Date.parse(first)) / (stepSeconds * 1_000))
  return index >= 0 && index < bars.length ? index : null
}
