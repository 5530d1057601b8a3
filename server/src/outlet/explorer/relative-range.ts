import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../platform/time/time-units.ts'

/** Ranges of a saved query. They end when the query runs. */
export const VIEW_RANGES = ['15m', '1h', '24h', '7d', '30d', '90d'] as const
/** Ranges of an export, which can also cover the previous calendar month, in UTC. */
export const EXPORT_RANGES = [...VIEW_RANGES, 'previousMonth'] as const
export type RelativeRange = (typeof EXPORT_RANGES)[number]

const SPAN_MS: Record<(typeof VIEW_RANGES)[number], number> = {
  '15m': 15 * MINUTE_MS,
  '1h': HOUR_MS,
  '24h': DAY_MS,
  '7d': 7 * DAY_MS,
  '30d': 30 * DAY_MS,
  '90d': 90 * DAY_MS,
}

/** Resolves a range at the given time. The end is exclusive. */
export function rangeAt(range: RelativeRange, nowMs: number): { fromMs: number; toMs: number } {
  if (range !== 'previousMonth') return { fromMs: nowMs - SPAN_MS[range], toMs: nowMs }
  const now = new Date(nowMs)
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  return { fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) }
}
