import { LANGUAGE } from '../text/language.ts'
import { shownTimeZone } from './time-zone.ts'

/** A day in the time zone that is shown. `month` counts from 0. */
export type CalendarDay = { year: number; month: number; day: number }

export function dayAt(ms: number): CalendarDay {
  const at = new Date(ms)
  return shownTimeZone() === 'UTC'
    ? { year: at.getUTCFullYear(), month: at.getUTCMonth(), day: at.getUTCDate() }
    : { year: at.getFullYear(), month: at.getMonth(), day: at.getDate() }
}

/** The first instant of a day. A day beyond the end of the month is in a later month, as in `Date`. */
export function dayStartMs({ year, month, day }: CalendarDay): number {
  return shownTimeZone() === 'UTC'
    ? Date.UTC(year, month, day)
    : new Date(year, month, day).getTime()
}

export function addDays({ year, month, day }: CalendarDay, days: number): CalendarDay {
  return dayAt(dayStartMs({ year, month, day: day + days }))
}

/** The first day of the week that contains the day, in the viewer's region. */
export function weekStart(day: CalendarDay): CalendarDay {
  const weekday = new Date(Date.UTC(day.year, day.month, day.day)).getUTCDay()
  return addDays(day, -((weekday - firstWeekday() + 7) % 7))
}

/** 0 for Sunday. Monday in browsers that don't know the region's week. */
function firstWeekday(): number {
  const locale: Intl.Locale & { getWeekInfo?: () => { firstDay: number } } = new Intl.Locale(
    LANGUAGE,
  )
  return (locale.getWeekInfo?.().firstDay ?? 1) % 7
}
