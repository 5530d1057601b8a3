/** An instant for a field of the browser, which takes local time without a zone, to the second. */
export function toInputTime(at: string | number): string {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  const offsetMs = new Date(ms).getTimezoneOffset() * 60_000
  return new Date(ms - offsetMs).toISOString().slice(0, 19)
}

/** Null when the field is empty, or half filled in. */
export function fromInputTime(text: string): string | null {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}
