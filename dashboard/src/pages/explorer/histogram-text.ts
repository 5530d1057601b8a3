import { formatLocal } from '../../parts/time.ts'
import type { Histogram } from './event-queries.ts'

export const OTHERS = 'all others'

/** "Nov 15, 09:45:00 – 09:50:00" */
export function barText(histogram: Histogram, index: number): string {
  return spanText(histogram, index, index)
}

/** From where the first bar begins to where the last one ends. */
export function spanText({ bars, stepSeconds }: Histogram, first: number, last: number): string {
  const from = formatLocal(Date.parse(bars[first] ?? ''), 'clock')
  const to = formatLocal(Date.parse(bars[last] ?? '') + stepSeconds * 1_000, 'clock')
  const at = to.lastIndexOf(' ')
  return from.startsWith(to.slice(0, at)) ? `${from} – ${to.slice(at + 1)}` : `${from} – ${to}`
}

/** What the bars from the first to the last hold together. */
export function countsAt({ series }: Histogram, first: number, last = first) {
  return series.map(({ value, counts }, position) => ({
    position,
    value,
    name: value ?? OTHERS,
    count: counts.slice(first, last + 1).reduce((sum, count) => sum + count, 0),
  }))
}

/** "5 minutes" */
export function stepText(stepSeconds: number): string {
  const [unit, seconds] = UNITS.find(([, size]) => stepSeconds % size === 0) ?? UNITS[3]
  const count = stepSeconds / seconds
  return count === 1 ? unit : `${count} ${unit}s`
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const
