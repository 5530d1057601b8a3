const MASK = '***'
/** Shorter credentials could be any word. */
const CREDENTIALS_CHARS_MIN = 8

/**
 * Replaces values in the text that a receiver sent, so that a receiver that echoes its request headers
 * doesn't reveal them. Also finds a value as JSON writes it, and credentials without their scheme, such as the
 * token after `Bearer`. If the text is cut, its end may be the beginning of a value.
 *
 * The search is linear, because both the text and the values can be chosen to make a naive one slow.
 */
export function maskValues(
  text: string,
  values: readonly string[],
  { isCut }: { isCut: boolean },
): string {
  const isMasked = new Uint8Array(text.length)
  for (const value of new Set(values.flatMap(formsOf))) markMatches(text, value, isMasked, isCut)
  let masked = ''
  let shownFrom = 0
  for (let at = isMasked.indexOf(1); at !== -1; at = isMasked.indexOf(1, shownFrom)) {
    masked += text.slice(shownFrom, at) + MASK
    const end = isMasked.indexOf(0, at)
    shownFrom = end === -1 ? text.length : end
  }
  return masked + text.slice(shownFrom)
}

function formsOf(value: string): string[] {
  const credentials = value.slice(value.indexOf(' ') + 1)
  const forms = credentials.length < CREDENTIALS_CHARS_MIN ? [value] : [value, credentials]
  return forms.flatMap((form) => [form, JSON.stringify(form).slice(1, -1)])
}

/** Knuth, Morris and Pratt: `matched` characters of `value` end at the current position. */
function markMatches(text: string, value: string, isMasked: Uint8Array, isCut: boolean): void {
  const borders = bordersOf(value)
  let matched = 0
  let markedTo = 0
  for (let at = 0; at < text.length; at += 1) {
    while (matched > 0 && text[at] !== value[matched]) matched = borders[matched - 1] ?? 0
    if (text[at] === value[matched]) matched += 1
    if (matched < value.length) continue
    isMasked.fill(1, Math.max(markedTo, at + 1 - matched), at + 1)
    markedTo = at + 1
    matched = borders[matched - 1] ?? 0
  }
  if (isCut) isMasked.fill(1, text.length - matched)
}

/** For each beginning of the text: the length of the longest shorter one that also ends it. */
function bordersOf(text: string): number[] {
  const borders = [0]
  let matched = 0
  for (let at = 1; at < text.length; at += 1) {
    while (matched > 0 && text[at] !== text[matched]) matched = borders[matched - 1] ?? 0
    if (text[at] === text[matched]) matched += 1
    borders.push(matched)
  }
  return borders
}
