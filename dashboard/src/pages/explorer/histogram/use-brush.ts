import { type PointerEvent, useState } from 'react'
import { EDGE_PX } from './histogram-chart.ts'

/** A shorter drag counts as a click. */
const DRAG_PX_MIN = 4

/** Where the pointer was pressed and where it is now. */
export type Drag = { fromPx: number; toPx: number }

/** Follows the pointer over the chart, and reports drags. */
export function useBrush({
  width,
  onStart,
  onBrush,
}: {
  width: number
  onStart: () => void
  onBrush: (drag: Drag) => void
}) {
  const [atPx, setAtPx] = useState<number | null>(null)
  const [pressed, setPressed] = useState<Drag | null>(null)
  const drag = pressed && Math.abs(pressed.toPx - pressed.fromPx) >= DRAG_PX_MIN ? pressed : null
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
      setPressed({ fromPx: px, toPx: px })
    },
    onPointerMove: (event: PointerEvent) => {
      const { px, isInside } = placeOf(event)
      setAtPx(isInside ? px : null)
      if (pressed) setPressed({ ...pressed, toPx: insideOf(px) })
    },
    onPointerUp: () => {
      setPressed(null)
      if (drag) onBrush(drag)
    },
    onPointerCancel: () => setPressed(null),
    onPointerLeave: () => setAtPx(null),
  }
  return { atPx, drag, props }
}
