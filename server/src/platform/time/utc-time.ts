import assert from 'node:assert/strict'
import { DAY_MS } from './time-units.ts'

const YEAR_0000_MS = -62_167_219_200_000
const YEAR_10000_MS = 253_402_300_800_000

const TWO_DIGITS = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
const THREE_DIGITS = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'))

/**
 * A cache of recently formatted days, indexed by the low bits of the day. A page of events has few days,
 * but alternates between timestamps and times of receipt.
 */
const CACHED_DATES_MAX = 64
const cachedDays: number[] = Array(CACHED_DATES_MAX).fill(Number.NaN)
const cachedDates: string[] = Array(CACHED_DATES_MAX).fill('')

/** Whether a time can be written as `YYYY-…`: whole milliseconds of the years 0000 to 9999. */
export function isUtcMs(ms: number): boolean {
  return Number.isInteger(ms) && ms >= YEAR_0000_MS && ms < YEAR_10000_MS
}

/** `YYYY-MM-DDTHH:MM:SS.sssZ`: the same text as `Date.toISOString` in a fifth of the time. */
export function formatUtcMs(ms: number): string {
  assert(isUtcMs(ms), 'a time is in whole milliseconds of the years 0000 to 9999')
  const day = Math.floor(ms / DAY_MS)
  const slot = day & (CACHED_DATES_MAX - 1)
  if (day !== cachedDays[slot]) {
    cachedDates[slot] = new Date(day * DAY_MS).toISOString().slice(0, 11)
    cachedDays[slot] = day
  }
  const msOfDay = ms - day * DAY_MS
  const secondOfDay = Math.floor(msOfDay / 1_000)
  const minuteOfDay = Math.floor(secondOfDay / 60)
  const hour = TWO_DIGITS[Math.floor(minuteOfDay / 60)]
  const minute = TWO_DIGITS[minuteOfDay % 60]
  const second = TWO_DIGITS[secondOfDay % 60]
  return `${cachedDates[slot]}${hour}:${minute}:${second}.${THREE_DIGITS[msOfDay % 1_000]}Z`
}
