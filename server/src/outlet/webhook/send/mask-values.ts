const MASK = '***'
/** Shorter credentials could be any word. */
const CREDENTIALS_CHARS_MIN = 8
/** Few texts contain the beginning of a value, and a short text is found quickly in any other. */
const BEGINNING_CHARS = 8
/** One match per escaped character. An escape that the end of the text cuts off is one too. */
const JSON_ESCAPE = /\\(?:u[\da-f]{4}|["\\/bfnrt]|(?:u[\da-f]{0,3})?$)/gi
const PERCENT_ESCAPE = /%(?:[\da-f]{2}|[\da-f]?$)/gi

/**
 * Replaces values in the text that a receiver sent, so that a receiver that echoes its request headers
 * doesn't reveal them. Also finds a value in JSON, however its characters are escaped, with percent-encoding,
 * and credentials without their scheme, such as the token after `Bearer`. If the text is cut, its end may be
 * the beginning of a value.
 *
 * The search is linear, because both the text and the values can be chosen to make a naive one slow.
 */
export function maskValues(
  text: string,
  values: readonly string[],
  { isCut }: { isCut: boolean },
): string {
  if (values.length === 0) return text
  const forms = new Set(values.flatMap(formsOf))
  const isMasked = new Uint8Array(text.length)
  for (const form of forms) markMatches(text, form, isMasked, isCut)
  for (const escape of [JSON_ESCAPE, PERCENT_ESCAPE]) {
    const read = unescaped(text, escape)
    if (read === null) continue
    const isReadMasked = new Uint8Array(read.text.length)
    for (const form of forms) markMatches(read.text, form, isReadMasked, isCut)
    for (let at = isReadMasked.indexOf(1); at !== -1; at = isReadMasked.indexOf(1, at + 1)) {
      isMasked.fill(1, read.starts[at], read.starts[at + 1])
    }
  }
  return masked(text, isMasked)
}

function masked(text: string, isMasked: Uint8Array): string {
  let shown = ''
  let shownFrom = 0
  for (let at = isMasked.indexOf(1); at !== -1; at = isMasked.indexOf(1, shownFrom)) {
    shown += text.slice(shownFrom, at) + MASK
    const end = isMasked.indexOf(0, at)
    shownFrom = end === -1 ? text.length : end
  }
  return shown + text.slice(shownFrom)
}

function formsOf(value: string): string[] {
  const credentials = value.slice(value.indexOf(' ') + 1)
  return credentials.length < CREDENTIALS_CHARS_MIN ? [value] : [value, credentials]
}

/** The text without escapes, and where each of its characters starts in the original. Null without any. */
function unescaped(text: string, escape: RegExp): { text: string; starts: number[] } | null {
  let plain = ''
  const starts: number[] = []
  let readTo = 0
  const copyTo = (end: number) => {
    plain += text.slice(readTo, end)
    for (; readTo < end; readTo += 1) starts.push(readTo)
  }
  for (const { 0: escaped, index } of text.matchAll(escape)) {
    copyTo(index)
    const character = characterOf(escaped)
    plain += character
    if (character !== '') starts.push(index)
    readTo = index + escaped.length
  }
  if (readTo === 0) return null
  copyTo(text.length)
  starts.push(text.length)
  return { text: plain, starts }
}

/** Values have no control characters, so it doesn't matter which one `\n` is. Empty if it is cut off. */
function characterOf(escaped: string): string {
  const hex = /^(?:\\u(....)|%(..))$/i.exec(escaped)
  if (hex) return String.fromCharCode(Number.parseInt(hex[1] ?? hex[2] ?? '', 16))
  return /^\\[^u]$/.test(escaped) ? escaped.slice(1).replace(/[bfnrt]/, '\n') : ''
}

/** Knuth–Morris–Pratt: `matched` characters of `value` end at the current position. */
function markMatches(text: string, value: string, isMasked: Uint8Array, isCut: boolean): void {
  const from = firstCandidate(text, value, isCut)
  if (from === -1) return
  const borders = bordersOf(value)
  let matched = 0
  let markedTo = 0
  for (let at = from; at < text.length; at += 1) {
    while (matched > 0 && text[at] !== value[matched]) matched = borders[matched - 1] ?? 0
    if (text[at] === value[matched]) matched += 1
    if (matched < value.length) continue
    isMasked.fill(1, Math.max(markedTo, at + 1 - matched), at + 1)
    markedTo = at + 1
    matched = borders[matched - 1] ?? 0
  }
  if (isCut) isMasked.fill(1, text.length - matched)
}

/** Where the value can start, at the earliest, or -1. At the end of a cut text, its beginning may be cut too. */
function firstCandidate(text: string, value: string, isCut: boolean): number {
  const from = text.indexOf(value.slice(0, BEGINNING_CHARS))
  if (from !== -1 || !isCut) return from
  return Math.max(0, text.length - BEGINNING_CHARS + 1)
}

/** For each prefix of the text: the length of its longest proper prefix that is also a suffix. */
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
