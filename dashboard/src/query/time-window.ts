import { addDays, dayAt, dayStartMs, weekStart } from '../parts/time/calendar.ts'
import { formatLocal } from '../parts/time/time.ts'
import type { ExplorerSearch, SearchPatch } from './explorer-search.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

export const RANGES = {
  '15m': { label: 'Last 15 minutes', spanMs: 15 * MINUTE_MS },
  '1h': { label: 'Last hour', spanMs: HOUR_MS },
  '24h': { label: 'Last 24 hours', spanMs: DAY_MS },
  '7d': { label: 'Last 7 days', spanMs: 7 * DAY_MS },
  '30d': { label: 'Last 30 days', spanMs: 30 * DAY_MS },
  '90d': { label: 'Last 90 days', spanMs: 90 * DAY_MS },
} as const
export type Range = keyof typeof RANGES

/** Periods of the calendar, in the time zone that is shown. */
const PERIODS = {
  today: 'Today',
  yesterday: 'Yesterday',
  thisWeek: 'This week',
  previousMonth: 'Last month',
  allTime: 'All time',
} as const
export type Period = keyof typeof PERIODS

export const RANGE_NAMES = Object.keys(RANGES).filter(isRange)
export const PERIOD_NAMES = Object.keys(PERIODS).filter(isPeriod)
const RANGE_DEFAULT: Range = '24h'

/** Zooming out multiplies the period by this factor. */
const ZOOM_OUT_FACTOR = 3
const YEARS_MS = { min: Date.UTC(1970, 0), max: Date.UTC(9999, 0) }

export type TimeWindow = {
  fromMs: number
  /** Exclusive. */
  toMs: number
  /** Null for exact times, which don't move with the clock. */
  range: Range | Period | null
}

export function isRange(text: string | undefined): text is Range {
  return text !== undefined && Object.hasOwn(RANGES, text)
}

export function isPeriod(text: string | undefined): text is Period {
  return text !== undefined && Object.hasOwn(PERIODS, text)
}

/** A period with an exact end can't contain new events, so the live tail shows the default one. */
export function livePatch(range: string | undefined): SearchPatch {
  return { live: '1', from: null, to: null, ...(isOver(range) && { range: null }) }
}

/** These periods are over. */
function isOver(range: string | null | undefined): boolean {
  return range === 'yesterday' || range === 'previousMonth'
}

/** `firstMs` is the time of the first event, if it is known. */
function periodAt(
  period: Period,
  nowMs: number,
  firstMs: number | null,
): { fromMs: number; toMs: number } {
  const today = dayAt(nowMs)
  const toMs = endOf(nowMs)
  switch (period) {
    case 'today':
      return { fromMs: dayStartMs(today), toMs }
    case 'yesterday':
      return { fromMs: dayStartMs(addDays(today, -1)), toMs: dayStartMs(today) }
    case 'thisWeek':
      return { fromMs: dayStartMs(weekStart(today)), toMs }
    case 'previousMonth': {
      const first = { ...today, day: 1 }
      return { fromMs: dayStartMs({ ...first, month: first.month - 1 }), toMs: dayStartMs(first) }
    }
    case 'allTime':
      return { fromMs: Math.min(firstMs ?? YEARS_MS.min, toMs - MINUTE_MS), toMs }
    default:
      return period satisfies never
  }
}

/**
 * Exact times take precedence over a range, which stays in the URL so that zooming out can return to it.
 */
export function windowOf(
  { range, from, to }: ExplorerSearch,
  nowMs: number,
  firstMs: number | null = null,
): TimeWindow {
  const fromMs = readTime(from)
  const toMs = readTime(to)
  if (fromMs !== null && toMs !== null && fromMs < toMs) return { fromMs, toMs, range: null }
  const name = isRange(range) ? range : RANGE_DEFAULT
  const { spanMs } = RANGES[name]
  if (fromMs !== null && fromMs < nowMs) return { fromMs, toMs: endOf(nowMs), range: null }
  if (toMs !== null) return { fromMs: toMs - spanMs, toMs, range: null }
  if (isPeriod(range)) return { ...periodAt(range, nowMs, firstMs), range }
  return { fromMs: endOf(nowMs) - spanMs, toMs: endOf(nowMs), range: name }
}

/** The next full minute, so that a slow client clock misses no events. */
function endOf(nowMs: number): number {
  return Math.ceil(nowMs / MINUTE_MS) * MINUTE_MS
}

function readTime(text: string | undefined): number | null {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return ms >= YEARS_MS.min && ms <= YEARS_MS.max ? ms : null
}

export function windowText({ fromMs, toMs, range }: TimeWindow): string {
  if (range !== null) return rangeLabel(range)
  const [first, last] = [formatLocal(fromMs, 'clock'), formatLocal(toMs, 'clock')]
  const [day, time] = splitLast(last)
  return first.startsWith(day) ? `${first} – ${time}` : `${first} – ${last}`
}

export function rangeLabel(range: Range | Period): string {
  return isPeriod(range) ? PERIODS[range] : RANGES[range].label
}

function splitLast(text: string): [string, string] {
  const at = text.lastIndexOf(' ')
  return [text.slice(0, at), text.slice(at + 1)]
}

export function rangePatch(range: Range | Period): SearchPatch {
  return { range, from: null, to: null, ...(isOver(range) && { live: null }) }
}

/** Exact times end the live tail, which has no end time. */
export function exactPatch(fromMs: number, toMs: number): SearchPatch {
  return { from: isoOf(fromMs), to: isoOf(toMs), live: null }
}

export function isoOf(ms: number): string {
  return new Date(Math.min(YEARS_MS.max, Math.max(YEARS_MS.min, Math.round(ms)))).toISOString()
}

/** The previous (-1) or next (1) window. */
export function shiftPatch(
  { fromMs, toMs, range }: TimeWindow,
  by: -1 | 1,
  nowMs: number,
): SearchPatch {
  if (range === 'today' && by === -1) return rangePatch('yesterday')
  if (range === 'yesterday' && by === 1) return rangePatch('today')
  const spanMs = toMs - fromMs
  const next = toMs + by * spanMs
  const same = RANGE_NAMES.find((name) => RANGES[name].spanMs === spanMs)
  // Windows end at a full minute, and the member can look at one for a while before moving on.
  const slackMs = Math.max(2 * MINUTE_MS, spanMs / 50)
  if (by === 1 && next + slackMs >= nowMs) {
    return same ? rangePatch(same) : exactPatch(endOf(nowMs) - spanMs, endOf(nowMs))
  }
  return exactPatch(next - spanMs, next)
}

/**
 * Returns to the range if the exact times are within it. Otherwise makes the window three times as wide.
 * A range becomes the next longer one.
 */
export function zoomOutPatch(search: ExplorerSearch, nowMs: number): SearchPatch {
  const { fromMs, toMs, range } = windowOf(search, nowMs)
  const base = windowOf(search.range === undefined ? {} : { range: search.range }, nowMs)
  if (range !== null) {
    const wider = RANGE_NAMES.find((name) => RANGES[name].spanMs > toMs - fromMs)
    return wider ? rangePatch(wider) : {}
  }
  if (fromMs >= base.fromMs && toMs <= base.toMs) return { from: null, to: null }
  const extraMs = ((toMs - fromMs) * (ZOOM_OUT_FACTOR - 1)) / 2
  return exactPatch(fromMs - extraMs, Math.min(toMs + extraMs, Math.max(toMs, endOf(nowMs))))
}

/** The day around an event. */
export function aroundPatch(atMs: number): SearchPatch {
  return exactPatch(atMs - DAY_MS / 2, atMs + DAY_MS / 2)
}
