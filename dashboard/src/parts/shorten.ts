const HEAD = 8
const TAIL = 6

/** A long id in its middle; ends are what people compare. */
export function shorten(text: string): string {
  return text.length <= HEAD + TAIL + 3 ? text : `${text.slice(0, HEAD)}…${text.slice(-TAIL)}`
}
