import { formatLocal } from '../../parts/time.ts'
import type { Histogram } from './event-queries.ts'

export const OTHERS = 'all others'

/** "Nov 15, 09:45:00 – 09:50:00" */
export function barWords({ bars, stepSeconds }: Histogram, index: number): string {
  const startMs = Date.parse(bars[index] ?? '')
  const first = formatLocal(startMs, 'clock')
  const last = formatLocal(startMs + stepSeconds * 1_000, 'clock')
  const at = last.lastIndexOf(' ')
  return first.startsWith(last.slice(0, at))
    ? `${first} – ${last.slice(at + 1)}`
    : `${first} – ${last}`
}

export function countsAt({ series }: Histogram, index: number) {
  return series.map(({ value, counts }, position) => ({
    position,
    value,
    name: value ?? OTHERS,
    count: counts[index] ?? 0,
  }))
}

/** "5 minutes" */
export function stepWords(stepSeconds: number): string {
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
