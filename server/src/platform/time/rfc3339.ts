import { MINUTE_MS } from './time-units.ts'

const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/

/** The range of times whose UTC year has four digits. */
const EARLIEST_MS = Date.parse('0000-01-01T00:00:00.000Z')
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * The time in milliseconds, or null if the text isn't an RFC 3339 date-time with an offset. Digits beyond
 * the millisecond are truncated, not rounded, so a time never moves into the future. Second 60 is rejected,
 * because our clocks can't represent it.
 */
export function parseRfc3339(text: string): number | null {
  const match = DATE_TIME.exec(text)
  if (!match) return null
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour, offsetMinute] =
    match
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null
  if (Number(offsetHour ?? 0) > 23 || Number(offsetMinute ?? 0) > 59) return null
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0')
  // Date.parse accepts the 31st of any month in some forms, so the day is checked separately.
  if (Number(day) < 1 || Number(day) > daysIn(Number(year), Number(month))) return null
  const localMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}.${milliseconds}Z`)
  const offsetMs = (Number(offsetHour ?? 0) * 60 + Number(offsetMinute ?? 0)) * MINUTE_MS
  const utcMs = sign === '-' ? localMs + offsetMs : localMs - offsetMs
  return utcMs >= EARLIEST_MS && utcMs <= LATEST_MS ? utcMs : null
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  if (month < 1 || month > 12) return 0
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}
