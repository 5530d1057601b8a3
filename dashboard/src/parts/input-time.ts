/** Formats a time for a `datetime-local` input, which takes local time without a zone, to the second. */
export function toInputTime(at: string | number): string {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  const offsetMs = new Date(ms).getTimezoneOffset() * 60_000
  return new Date(ms - offsetMs).toISOString().slice(0, 19)
}

/** Null if the input is empty or incomplete. */
export function fromInputTime(text: string): string | null {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}
