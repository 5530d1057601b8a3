import { LANGUAGE } from './language.ts'

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

const FORMATS: Record<TimeStyle, Intl.DateTimeFormat> = {
  full: new Intl.DateTimeFormat(LANGUAGE, FULL),
  clock: new Intl.DateTimeFormat(LANGUAGE, CLOCK),
  day: new Intl.DateTimeFormat(LANGUAGE, DAY),
}

export function formatLocal(ms: number, style: TimeStyle): string {
  return FORMATS[style].format(ms)
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
