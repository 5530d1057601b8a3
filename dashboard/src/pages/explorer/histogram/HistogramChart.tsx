import { useComputedColorScheme } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { type PointerEvent, useId, useState } from 'react'
import { type BarCursor, barTimes, endsOf } from './bar-cursor.ts'
import type { Histogram } from '../event-queries.ts'
import { brushedTime, EDGE_PX, msOf, pxOf } from './histogram-chart.ts'
import classes from './Histogram.module.css'
import { HistogramBars } from './HistogramBars.tsx'
import { HistogramHover } from './HistogramHover.tsx'
import type { TimeWindow } from '../../../query/time-window.ts'
import { useBarCursor } from './use-bar-cursor.ts'

/** A shorter drag is a click with an unsteady hand. */
const BRUSH_PX_MIN = 4

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
  const [atPx, setAtPx] = useState<number | null>(null)
  const [brush, setBrush] = useState<{ fromPx: number; toPx: number } | null>(null)
  const placeOf = ({ clientX, currentTarget }: PointerEvent) => {
    const px = clientX - currentTarget.getBoundingClientRect().left
    return { px, isInside: px >= EDGE_PX.left && px <= width - EDGE_PX.right }
  }
  const insideOf = (px: number) => Math.min(width - EDGE_PX.right, Math.max(EDGE_PX.left, px))
  const keyboard = useBarCursor({ histogram, timeWindow, onZoom: onBrush })
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
      onPointerDown={(event) => {
        const { px, isInside } = placeOf(event)
        if (event.button !== 0 || !isInside) return
        keyboard.release()
        event.currentTarget.setPointerCapture(event.pointerId)
        setBrush({ fromPx: px, toPx: px })
      }}
      onPointerMove={(event) => {
        const { px, isInside } = placeOf(event)
        setAtPx(isInside ? px : null)
        if (brush) setBrush({ ...brush, toPx: insideOf(px) })
      }}
      onPointerUp={() => {
        setBrush(null)
        if (!brush || Math.abs(brush.toPx - brush.fromPx) < BRUSH_PX_MIN) return
        const { fromMs, toMs } = brushedTime(brush.fromPx, brush.toPx, timeWindow, width)
        onBrush(fromMs, toMs)
      }}
      onPointerCancel={() => setBrush(null)}
      onPointerLeave={() => setAtPx(null)}
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
