/** How far the clocks of a time zone are ahead of UTC at a time, in milliseconds. */
export type OffsetOf = (atMs: number) => number

/** Reads the name of an IANA time zone. Returns null if there is no such zone. */
export function readTimeZone(name: string): OffsetOf | null {
  try {
    const format = new Intl.DateTimeFormat('en', { timeZone: name, timeZoneName: 'longOffset' })
    return (atMs) => parseOffset(format.format(atMs))
  } catch {
    return null
  }
}

/** Parses the end of, for example, "11/17/2026, GMT+05:30". UTC is "GMT", and old offsets have seconds. */
function parseOffset(text: string): number {
  const [, sign, hours, minutes, seconds = '0'] =
    /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? []
  const offsetS = Number(hours ?? 0) * 3_600 + Number(minutes ?? 0) * 60 + Number(seconds)
  return (sign === '-' ? -offsetS : offsetS) * 1_000
}
