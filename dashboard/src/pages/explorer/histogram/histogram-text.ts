import { formatLocal } from '../../../parts/time/time.ts'
import type { Histogram } from '../event-queries.ts'
import { barEndMs } from './histogram-chart.ts'

/** For example "Nov 15, 09:45:00 – 09:50:00". */
export function barText(histogram: Histogram, index: number): string {
  return spanText(histogram, index, index)
}

/** The period from the start of the first bar to the end of the last one. */
export function spanText(histogram: Histogram, first: number, last: number): string {
  const from = formatLocal(Date.parse(histogram.bars[first] ?? ''), 'clock')
  const to = formatLocal(barEndMs(histogram, last), 'clock')
  const at = to.lastIndexOf(' ')
  return from.startsWith(to.slice(0, at)) ? `${from} – ${to.slice(at + 1)}` : `${from} – ${to}`
}

/** The counts per series, summed over the bars from first to last. */
export function countsAt({ series }: Histogram, first: number, last = first) {
  return series.map(({ value, label, counts }) => ({
    value,
    name: label ?? value ?? 'Other',
    count: counts.slice(first, last + 1).reduce((sum, count) => sum + count, 0),
  }))
}

/** For example "5 minutes". */
export function stepText(stepSeconds: number): string {
  const [unit, seconds] = UNITS.find(([, size]) => stepSeconds % size === 0) ?? UNITS[3]
  const count = stepSeconds / seconds
  return `${count} ${count === 1 ? unit : `${unit}s`}`
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const
