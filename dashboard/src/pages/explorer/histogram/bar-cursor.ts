import { formatCount } from '../../../parts/text/format.ts'
import type { Histogram } from '../event-queries.ts'
import { barEndMs } from './histogram-chart.ts'
import { countsAt, spanText } from './histogram-text.ts'
import type { TimeWindow } from '../../../query/time-window.ts'

/** The selected bars, from `anchor` to `at` inclusive. Either can be the lower one. */
export type BarCursor = { anchor: number; at: number }

/** Page Up and Page Down move by the number of bars divided by this. */
const PAGE_DIVISOR = 10

/** Returns the cursor after a key press, or null if the key doesn't move it. */
export function moveBar(
  { anchor, at }: BarCursor,
  key: string,
  { count, isExtending }: { count: number; isExtending: boolean },
): BarCursor | null {
  const page = Math.max(1, Math.round(count / PAGE_DIVISOR))
  const to = {
    ArrowLeft: at - 1,
    ArrowRight: at + 1,
    PageUp: at - page,
    PageDown: at + page,
    Home: 0,
    End: count - 1,
  }[key]
  if (to === undefined || count === 0) return null
  const next = Math.min(count - 1, Math.max(0, to))
  return { anchor: isExtending ? Math.min(count - 1, anchor) : next, at: next }
}

/** The period of the selected bars, clipped to the period shown, because the outer bars can exceed it. */
export function barTimes(
  histogram: Histogram,
  cursor: BarCursor,
  shown: TimeWindow,
): { fromMs: number; toMs: number } {
  const [first, last] = endsOf(cursor)
  const fromMs = Date.parse(histogram.bars[first] ?? '')
  const toMs = barEndMs(histogram, last)
  return { fromMs: Math.max(shown.fromMs, fromMs), toMs: Math.min(shown.toMs, toMs) }
}

/** The bar at this time, or the nearest one. */
export function barAt({ bars }: Histogram, ms: number): number {
  return Math.max(
    0,
    bars.findLastIndex((start) => Date.parse(start) <= ms),
  )
}

/** For example "Nov 15, 09:45:00 – 09:50:00: 12 events, auth 10, billing 2". */
export function cursorText(histogram: Histogram, cursor: BarCursor): string {
  const [first, last] = endsOf(cursor)
  const parts = countsAt(histogram, first, last).filter(({ count }) => count > 0)
  const total = parts.reduce((sum, { count }) => sum + count, 0)
  const events = `${formatCount(total)} ${total === 1 ? 'event' : 'events'}`
  const bars = last - first + 1
  if (bars > 1) return `${bars} bars, ${spanText(histogram, first, last)}: ${events}`
  const named = parts.map(({ name, count }) => `${name} ${formatCount(count)}`)
  return [`${spanText(histogram, first, last)}: ${events}`, ...named].join(', ')
}

export function endsOf({ anchor, at }: BarCursor): [first: number, last: number] {
  return [Math.min(anchor, at), Math.max(anchor, at)]
}
