import { parseJson } from '../../platform/json/parse-json.ts'

export const JSON_TYPES = ['null', 'boolean', 'number', 'string', 'array', 'object'] as const
export type JsonType = (typeof JSON_TYPES)[number]

/** The distance between two yields. However dense the keys are, it takes less than a millisecond. */
const CHARS_PER_STEP = 8_192
/** A longer path is not listed. Two keys of 100 characters fit. */
export const PATH_CHARS_MAX = 256

/**
 * Finds the keys of an event's metadata and those of the objects directly in it. A path is the key as it is
 * spelled in the text; for an inner key, the outer key, a comma and the inner key. `pathKeys` decodes it. The
 * path is null if it is too long. It is not built then, because a long outer key would be repeated for each
 * inner one.
 *
 * The text is canonical (RFC 8785), so it has no whitespace, and a key has only one spelling. Scanning it is
 * several times faster than parsing it, and never builds an object with thousands of keys or one named
 * `__proto__`.
 */
export function* findKeys(
  text: string,
  found: (path: string | null, type: JsonType, isInner: boolean) => void,
): Generator<void, void, void> {
  let stepEnd = CHARS_PER_STEP
  // The outer key, once its object is entered.
  let outer: string | null = null
  let at = 1
  while (at < text.length) {
    const char = text.charCodeAt(at)
    if (char !== QUOTE) {
      // A comma before the next key, or the end of the inner or the outer object.
      if (char === CLOSE_OBJECT) outer = null
      at += 1
      continue
    }
    const keyEnd = endOfString(text, at)
    const type = typeAt(text, keyEnd + 1)
    const pathChars: number = keyEnd - at + (outer === null ? 0 : outer.length + 1)
    const key: string | null = pathChars > PATH_CHARS_MAX ? null : text.slice(at, keyEnd)
    found(outer === null || key === null ? key : `${outer},${key}`, type, outer !== null)
    if (type === 'object' && outer === null && key !== null) {
      outer = key
      at = keyEnd + 2
    } else {
      at = endOfValue(text, keyEnd + 1)
    }
    if (at >= stepEnd) {
      stepEnd = at + CHARS_PER_STEP
      yield
    }
  }
}

/** The keys of a path, outermost first. */
export function pathKeys(path: string): string[] {
  return [parseJson(`[${path}]`)].flat().map(String)
}

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** The position after the closing quote. */
function endOfString(text: string, opening: number): number {
  let at = opening + 1
  for (;;) {
    const quote = text.indexOf('"', at)
    if (quote === -1) return text.length
    let backslashes = 0
    while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes += 1
    at = quote + 1
    if (backslashes % 2 === 0) return at
  }
}

function typeAt(text: string, at: number): JsonType {
  switch (text.charAt(at)) {
    case '"':
      return 'string'
    case '{':
      return 'object'
    case '[':
      return 'array'
    case 'n':
      return 'null'
    case 't':
    case 'f':
      return 'boolean'
    default:
      return 'number'
  }
}

/** The position of the comma or bracket after a value. */
function endOfValue(text: string, start: number): number {
  let depth = 0
  let at = start
  while (at < text.length) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) {
      at = endOfString(text, at)
      continue
    }
    const isClosing = char === CLOSE_OBJECT || char === CLOSE_ARRAY
    if (depth === 0 && (isClosing || char === COMMA)) return at
    if (isClosing) depth -= 1
    else if (char === OPEN_OBJECT || char === OPEN_ARRAY) depth += 1
    at += 1
  }
  return at
}
