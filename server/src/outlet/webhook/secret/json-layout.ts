/**
 * A JSON text as other programs may have written it again: without whitespace, and pretty-printed with two spaces.
 * `pretty` is null if it would be much larger than any body we send.
 */
type JsonLayouts = { compact: string; pretty: string | null }

/** A string, a number or literal, or a bracket, comma or colon; with the whitespace before it. */
const TOKEN = /\s*("[^"\\]*(?:\\[^][^"\\]*)*"?|[^\s"{}[\],:]+|[{}[\],:])/y
const TOKENS_PER_STEP = 1_000
/** Lines are indented by depth, so a nested body grows a lot. */
const GAP_CHARS_MAX = 400_000

/**
 * Places whitespace between the tokens and leaves them unchanged. Does the same with any other text. Yields every
 * thousand tokens: parsing a body of 256 KiB and writing it again would block the thread for 30 ms.
 */
export function* layoutsOf(text: string): Generator<void, JsonLayouts, void> {
  const compact: string[] = []
  const pretty: string[] = []
  let gapChars = 0
  let depth = 0
  let last = ''
  for (let at = 0; at < text.length;) {
    const tokens: string[] = []
    const spaced: string[] = []
    while (at < text.length && tokens.length < TOKENS_PER_STEP) {
      TOKEN.lastIndex = at
      const token = TOKEN.exec(text)?.[1]
      at = token === undefined ? text.length : TOKEN.lastIndex
      // Only whitespace is left.
      if (token === undefined) break
      tokens.push(token)
      if (isClosing(token)) depth = Math.max(0, depth - 1)
      if (gapChars <= GAP_CHARS_MAX) {
        const gap = gapBefore(token, { last, depth })
        gapChars += gap.length
        spaced.push(gap, token)
      }
      if (isOpening(token)) depth += 1
      last = token
    }
    compact.push(tokens.join(''))
    pretty.push(spaced.join(''))
    yield
  }
  return { compact: compact.join(''), pretty: gapChars > GAP_CHARS_MAX ? null : pretty.join('') }
}

const isOpening = (token: string): boolean => token === '{' || token === '['
const isClosing = (token: string): boolean => token === '}' || token === ']'

/** The whitespace that `JSON.stringify` writes before a token. */
function gapBefore(token: string, { last, depth }: { last: string; depth: number }): string {
  if (last === ':') return ' '
  const startsLine = isClosing(token) ? !isOpening(last) : isOpening(last) || last === ','
  return startsLine ? `\n${'  '.repeat(depth)}` : ''
}
