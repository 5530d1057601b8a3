import type { paths } from '../../api/schema.d.ts'

export type Arrivals =
  paths['/dashboard/integrity/arrivals']['get']['responses'][200]['content']['application/json']

/** A time without events, and how many there were at the same time in the period before. */
export type Silence = { fromMs: number; toMs: number; before: number }

/** Fewer events than this can be absent by chance. */
const BEFORE_MIN = 5

/**
 * The times at which no event arrived although events arrived at the same time in the period before. The bar
 * of the current time doesn't count, because it isn't over.
 */
export function findSilences(
  { bars, lastBarEnd, counts, previousCounts }: Arrivals,
  nowMs: number,
): Silence[] {
  const silences: Silence[] = []
  let open: Silence | null = null
  for (const [index, start] of bars.entries()) {
    const toMs = Date.parse(bars[index + 1] ?? lastBarEnd)
    if (counts[index] !== 0 || toMs > nowMs) {
      open = null
      continue
    }
    if (open === null) {
      open = { fromMs: Date.parse(start), toMs, before: 0 }
      silences.push(open)
    }
    open.toMs = toMs
    open.before += previousCounts[index] ?? 0
  }
  return silences.filter(({ before }) => before >= BEFORE_MIN)
}
