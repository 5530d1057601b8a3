import { type PointerEvent, useState } from 'react'
import type { TimeWindow } from '../../../query/time-window.ts'
import { brushedTime, EDGE_PX } from './histogram-chart.ts'

/** A shorter drag counts as a click. */
const BRUSH_PX_MIN = 4

/** Follows the pointer over the chart, and selects a period by dragging. */
export function useBrush({
  timeWindow,
  width,
  onStart,
  onBrush,
}: {
  timeWindow: TimeWindow
  width: number
  onStart: () => void
  onBrush: (fromMs: number, toMs: number) => void
}) {
  const [atPx, setAtPx] = useState<number | null>(null)
  const [brush, setBrush] = useState<{ fromPx: number; toPx: number } | null>(null)
  const placeOf = ({ clientX, currentTarget }: PointerEvent) => {
    const px = clientX - currentTarget.getBoundingClientRect().left
    return { px, isInside: px >= EDGE_PX.left && px <= width - EDGE_PX.right }
  }
  const insideOf = (px: number) => Math.min(width - EDGE_PX.right, Math.max(EDGE_PX.left, px))
  const props = {
    onPointerDown: (event: PointerEvent) => {
      const { px, isInside } = placeOf(event)
      if (event.button !== 0 || !isInside) return
      onStart()
      event.currentTarget.setPointerCapture(event.pointerId)
      setBrush({ fromPx: px, toPx: px })
    },
    onPointerMove: (event: PointerEvent) => {
      const { px, isInside } = placeOf(event)
      setAtPx(isInside ? px : null)
      if (brush) setBrush({ ...brush, toPx: insideOf(px) })
    },
    onPointerUp: () => {
      setBrush(null)
      if (!brush || Math.abs(brush.toPx - brush.fromPx) < BRUSH_PX_MIN) return
      const { fromMs, toMs } = brushedTime(brush.fromPx, brush.toPx, timeWindow, width)
      onBrush(fromMs, toMs)
    },
    onPointerCancel: () => setBrush(null),
    onPointerLeave: () => setAtPx(null),
  }
  return { atPx, brush, props }
}
