import { shownTimeZone, zoneOffsetMs } from './time-zone.ts'

/** A date, and a time unless midnight is meant. Pasted times may have a T between the two. */
const ENTERED = /^(\d{4}-\d{2}-\d{2})(?:[T ]+(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?))?$/

/** The text of an input: a time of the zone that is shown, to the second. */
export function toInputTime(at: string | number): string {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  return new Date(ms + zoneOffsetMs(ms)).toISOString().slice(0, 19).replace('T', ' ')
}

/** Null if the text is not a time. */
export function fromInputTime(text: string): string | null {
  const [, date, time = '00:00'] = ENTERED.exec(text.trim()) ?? []
  const ms = Date.parse(`${date}T${time}${shownTimeZone() === 'UTC' ? 'Z' : ''}`)
  // Date.parse turns February 30 into a day of March.
  const isDay = !Number.isNaN(ms) && toInputTime(ms).slice(0, 10) === date
  return isDay ? new Date(ms).toISOString() : null
}
