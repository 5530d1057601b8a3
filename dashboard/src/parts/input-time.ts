import { shownTimeZone, zoneOffsetMs } from './time-zone.ts'

/** Formats a time for a `datetime-local` input, which has no zone, to the second. */
export function toInputTime(at: string | number): string {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  return new Date(ms + zoneOffsetMs(ms)).toISOString().slice(0, 19)
}

/** Null if the input is empty or incomplete. */
export function fromInputTime(text: string): string | null {
  const ms = Date.parse(shownTimeZone() === 'UTC' ? `${text}Z` : text)
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}
