import { type FocusEvent, type KeyboardEvent, useState } from 'react'
import { type BarCursor, barTimes, cursorText, moveBar } from './bar-cursor.ts'
import type { Histogram } from '../event-queries.ts'
import type { TimeWindow } from '../../../query/time-window.ts'

/**
 * Keyboard control of the bars: the arrow keys move, Shift selects several, Enter zooms in, Escape
 * deselects. Its role is `slider`, because every screen reader passes arrow keys to a slider and reads
 * its value at each step.
 */
export function useBarCursor({
  histogram,
  timeWindow,
  onZoom,
}: {
  histogram: Histogram
  timeWindow: TimeWindow
  onZoom: (fromMs: number, toMs: number) => void
}) {
  const [chosen, choose] = useState<BarCursor | null>(null)
  const count = histogram.bars.length
  // Counts that loaded in the meantime can have fewer bars.
  const cursor = chosen && count > 0 ? within(chosen, count) : null
  const press = (event: KeyboardEvent) => {
    const from = cursor ?? startOf(count)
    const next = moveBar(from, event.key, { count, isExtending: event.shiftKey })
    if (next) {
      choose(next)
    } else if (event.key === 'Enter' && cursor) {
      const { fromMs, toMs } = barTimes(histogram, cursor, timeWindow)
      choose(startOf(count))
      if (fromMs < toMs) onZoom(fromMs, toMs)
    } else if (event.key === 'Escape' && cursor && cursor.anchor !== cursor.at) {
      choose({ anchor: cursor.at, at: cursor.at })
    } else {
      return
    }
    // Prevents scrolling and the Escape shortcut of the page.
    event.preventDefault()
  }
  return {
    cursor,
    release: () => choose(null),
    props: {
      role: 'slider',
      tabIndex: count === 0 ? -1 : 0,
      'aria-label': 'Events over time',
      'aria-valuemin': 1,
      'aria-valuemax': Math.max(1, count),
      'aria-valuenow': (cursor?.at ?? startOf(count).at) + 1,
      'aria-valuetext': count === 0 ? 'none' : cursorText(histogram, cursor ?? startOf(count)),
      onKeyDown: press,
      // After a click the pointer has its own marker, so only keyboard focus sets the cursor.
      onFocus: ({ currentTarget }: FocusEvent<HTMLElement>) =>
        currentTarget.matches(':focus-visible') && choose(startOf(count)),
      onBlur: () => choose(null),
    },
  }
}

/** Starts at the newest bar. */
function startOf(count: number): BarCursor {
  return within({ anchor: count - 1, at: count - 1 }, count)
}

function within({ anchor, at }: BarCursor, count: number): BarCursor {
  const bound = (index: number) => Math.max(0, Math.min(count - 1, index))
  return { anchor: bound(anchor), at: bound(at) }
}
