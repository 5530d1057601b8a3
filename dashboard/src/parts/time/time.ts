import { LANGUAGE } from '../text/language.ts'
import { LOCAL_TIME_ZONE, shownTimeZone } from './time-zone.ts'

export type TimeStyle = 'full' | 'clock' | 'day'

const FULL: Intl.DateTimeFormatOptions = {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
}
const CLOCK: Intl.DateTimeFormatOptions = {
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
}
const DAY: Intl.DateTimeFormatOptions = { year: 'numeric', month: 'short', day: '2-digit' }

/** Formats times in the time zone that is shown when it is called. */
export function zonedFormat(options: Intl.DateTimeFormatOptions): (ms: number) => string {
  const local = new Intl.DateTimeFormat(LANGUAGE, options)
  const utc = new Intl.DateTimeFormat(LANGUAGE, { ...options, timeZone: 'UTC' })
  return (ms) => (shownTimeZone() === LOCAL_TIME_ZONE ? local : utc).format(ms)
}

const clockFormat = zonedFormat(CLOCK)
const clockWithYear = zonedFormat({ ...CLOCK, year: 'numeric' })

const FORMATS: Record<TimeStyle, (ms: number) => string> = {
  full: zonedFormat(FULL),
  clock: (ms) => (isThisYear(ms) ? clockFormat : clockWithYear)(ms),
  day: zonedFormat(DAY),
}

export function isThisYear(ms: number): boolean {
  return new Date(ms).getFullYear() === new Date().getFullYear()
}

/** In the viewer's time zone, or in UTC if they chose it. "clock" has the year only if it is another one. */
export function formatLocal(ms: number, style: TimeStyle): string {
  return FORMATS[style](ms)
}

const WITH_OFFSET = new Intl.DateTimeFormat(LANGUAGE, { ...FULL, timeZoneName: 'shortOffset' })

/** In the browser's time zone, with its offset, whatever the viewer chose. */
export function formatWithOffset(ms: number): string {
  return WITH_OFFSET.format(ms)
}

/** For tooltips: the time in the zone that isn't shown, and how long ago it was. */
export function formatHint(ms: number): string {
  const other = shownTimeZone() === LOCAL_TIME_ZONE ? formatUtc(ms) : formatWithOffset(ms)
  return `${other} · ${formatRelative(ms, Date.now())}`
}

export function formatUtc(ms: number): string {
  return `${new Date(ms).toISOString().replace('T', ' ').replace('Z', '')} UTC`
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const STEPS: readonly [unit: Intl.RelativeTimeFormatUnit, ms: number][] = [
  ['year', 365 * 86_400_000],
  ['month', 30 * 86_400_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]

export function formatRelative(ms: number, nowMs: number): string {
  const away = ms - nowMs
  const [unit, step] = STEPS.find(([, size]) => Math.abs(away) >= size) ?? ['second', 1_000]
  return RELATIVE.format(Math.round(away / step), unit)
}

/** For example "3 hours". */
export function formatSpan(ms: number): string {
  const [unit, step] = STEPS.find(([, size]) => ms >= size) ?? ['second', 1_000]
  const count = Math.round(ms / step)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
