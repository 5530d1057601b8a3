import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../platform/time/time-units.ts'

const SPAN_MS = {
  '15m': 15 * MINUTE_MS,
  '1h': HOUR_MS,
  '24h': DAY_MS,
  '7d': 7 * DAY_MS,
  '30d': 30 * DAY_MS,
  '90d': 90 * DAY_MS,
} as const
const SPANS = ['15m', '1h', '24h', '7d', '30d', '90d'] as const

/** Ranges of a saved query. Spans end when the query runs. The others follow the calendar, in UTC. */
export const VIEW_RANGES = [
  ...SPANS,
  'today',
  'yesterday',
  'thisWeek',
  'previousMonth',
  'allTime',
] as const
/** Ranges of an export. */
export const EXPORT_RANGES = [...SPANS, 'previousMonth'] as const
export type RelativeRange = (typeof VIEW_RANGES)[number]

const FIRST_MONDAY_MS = 4 * DAY_MS

/** Resolves a range at the given time. The end is exclusive. A week starts on Monday. */
export function rangeAt(range: RelativeRange, nowMs: number): { fromMs: number; toMs: number } {
  if (isSpan(range)) return { fromMs: nowMs - SPAN_MS[range], toMs: nowMs }
  const todayMs = Math.floor(nowMs / DAY_MS) * DAY_MS
  const mondayMs = todayMs - ((todayMs - FIRST_MONDAY_MS) % (7 * DAY_MS))
  const now = new Date(nowMs)
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  const ranges = {
    today: { fromMs: todayMs, toMs: nowMs + 1 },
    yesterday: { fromMs: todayMs - DAY_MS, toMs: todayMs },
    thisWeek: { fromMs: mondayMs, toMs: nowMs + 1 },
    previousMonth: { fromMs: Date.UTC(year, month - 1), toMs: Date.UTC(year, month) },
    allTime: { fromMs: 0, toMs: nowMs + 1 },
  }
  return ranges[range]
}

function isSpan(range: RelativeRange): range is keyof typeof SPAN_MS {
  return Object.hasOwn(SPAN_MS, range)
}
