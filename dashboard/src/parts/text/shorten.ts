const HEAD = 8
const TAIL = 6

/** Shortens a long id in the middle, because people compare the ends. */
export function shorten(text: string): string {
  return text.length <= HEAD + TAIL + 3 ? text : `${text.slice(0, HEAD)}…${text.slice(-TAIL)}`
}
