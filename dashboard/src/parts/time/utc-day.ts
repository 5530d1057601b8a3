import { LANGUAGE } from '../text/language.ts'

const DAY_MS = 86_400_000

const DAY = new Intl.DateTimeFormat(LANGUAGE, {
  weekday: 'short',
  month: 'short',
  day: 'numeric',
  year: 'numeric',
  timeZone: 'UTC',
})

export function formatDay(dayMs: number): string {
  return DAY.format(dayMs)
}

/** The start of the UTC day that contains this time. */
function dayOf(atMs: number): number {
  return Math.floor(atMs / DAY_MS) * DAY_MS
}

/** The last `count` days, including today. */
export function lastDays(count: number, nowMs: number): number[] {
  const today = dayOf(nowMs)
  return Array.from({ length: count }, (_, index) => today - (count - 1 - index) * DAY_MS)
}
