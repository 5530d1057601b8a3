import {
  JSON_DEPTH_MAX,
  type JsonFault,
  jsonPointer,
  shorten,
  quoted,
  StrictJsonError,
} from './json-fault.ts'
import { fitsDouble } from './json-number.ts'

/** A string value and its RFC 8785 text. */
export type JsonString = { value: string; canonical: string }

/** What error messages call a string. */
export const KEY = 'A key'
export const STRING = 'A string'

/** The amount of work between two yields, in characters, and the fixed cost of a token. */
const CHARS_PER_STEP = 65_536
const CHARS_PER_TOKEN = 256

/**
 * Scans the tokens of a JSON text one by one, and rejects what RFC 8259 or our limits don't allow.
 * `json-reader.ts` builds values from them.
 */
export class JsonScanner {
  readonly #text: string
  /** Keys and indexes of the containers around `at`. */
  readonly path: (string | number)[] = []
  at = 0
  #charsDone = 0

  constructor(text: string) {
    this.#text = text
  }

  begin(): void {
    if (this.#text.startsWith('\ufeff')) {
      this.#fail('syntax', 'The text starts with a byte order mark')
    }
    this.#skipSpace()
  }

  end(): void {
    this.#skipSpace()
    if (this.at < this.#text.length) {
      this.#fail('syntax', `Unexpected ${this.#nextShown()} after the value`)
    }
  }

  /** The next character. */
  char(): string {
    return this.#text.charAt(this.at)
  }

  /** Whether it is time to yield. Call this after each token. */
  isStepOver(chars = 0): boolean {
    this.#charsDone += CHARS_PER_TOKEN + chars
    if (this.#charsDone < CHARS_PER_STEP) return false
    this.#charsDone = 0
    return true
  }

  /** Steps into a container; false if it is empty. The path has one entry per enclosing container. */
  enter(closing: string): boolean {
    if (this.path.length >= JSON_DEPTH_MAX) {
      this.#fail('value', `Objects and arrays can be nested at most ${JSON_DEPTH_MAX} levels deep`)
    }
    this.at += 1
    this.#skipSpace()
    return !this.#take(closing)
  }

  /** Steps over the comma to the next member or item; false at the end of the container. */
  advance(closing: string): boolean {
    this.#skipSpace()
    if (this.#take(closing)) return false
    if (!this.#take(',')) this.#unexpected(`a comma or "${closing}"`)
    this.#skipSpace()
    return true
  }

  expectKey(): void {
    if (this.#text.charAt(this.at) !== '"') this.#unexpected('a key in double quotes')
  }

  colon(): void {
    this.#skipSpace()
    if (!this.#take(':')) this.#unexpected('a colon')
    this.#skipSpace()
  }

  scalar(): unknown {
    const char = this.#text.charAt(this.at)
    // JSON.parse copies the string, so that the value doesn't keep the whole text in memory.
    if (char === '"') return JSON.parse(this.string(STRING).canonical)
    if (isNumberStart(char)) return Number(this.#number())
    return JSON.parse(this.#literal())
  }

  canonicalScalar(): string {
    const char = this.#text.charAt(this.at)
    if (char === '"') return this.string(STRING).canonical
    // RFC 8785 writes a number the same way as `String`.
    if (isNumberStart(char)) return String(Number(this.#number()))
    return this.#literal()
  }

  string(noun: typeof KEY | typeof STRING): JsonString {
    const start = this.at
    this.at += 1
    const hasEscapes = this.#passChars(Number.POSITIVE_INFINITY)
    this.at += 1
    const token = this.#text.slice(start, this.at)
    this.#charsDone += token.length
    // JSON.stringify escapes only what JSON requires.
    if (!hasEscapes) return { value: token.slice(1, -1), canonical: token }
    return this.#decode(token, { noun, start })
  }

  isLongString(): boolean {
    const { length } = this.#text
    const start = this.at
    if (length - start <= CHARS_PER_STEP) return false
    const quote = this.#text.indexOf('"', start + 1)
    if (quote === -1 || quote - start > CHARS_PER_STEP) return true
    if (this.#text.charCodeAt(quote - 1) !== BACKSLASH) return false
    this.at += 1
    this.#passChars(start + CHARS_PER_STEP)
    const isClosed = this.#text.charCodeAt(this.at) === QUOTE
    this.at = start
    return !isClosed
  }

  /** The same in parts, because four million characters take 75 ms. */
  *longString(noun: typeof KEY | typeof STRING): Generator<void, JsonString, void> {
    const start = this.at
    const values: string[] = []
    const canonicals: string[] = []
    this.at += 1
    while (this.#text.charCodeAt(this.at) !== QUOTE) {
      const from = this.at
      const hasEscapes = this.#passChars(from + CHARS_PER_STEP)
      const part = this.#text.slice(from, this.at)
      const { value, canonical } = hasEscapes
        ? this.#decode(`"${part}"`, { noun, start })
        : { value: part, canonical: `"${part}"` }
      values.push(value)
      canonicals.push(canonical.slice(1, -1))
      yield
    }
    this.at += 1
    return { value: values.join(''), canonical: ['"', ...canonicals, '"'].join('') }
  }

  /** `noun` starts the error message; `start` is where the whole string begins. */
  #decode(token: string, { noun, start }: { noun: string; start: number }): JsonString {
    const value = String(JSON.parse(token))
    const forbidden = value.includes('\0')
      ? 'the character U+0000'
      : value.isWellFormed()
        ? null
        : 'an unpaired surrogate'
    if (forbidden !== null) {
      this.at = start
      this.#fail('value', `${noun} must not contain ${forbidden}`)
    }
    return { value, canonical: JSON.stringify(value) }
  }

  /**
   * Steps to the closing quote, or to the first position after `end` where the string can be split: not
   * inside a surrogate pair. True if it passed any escapes.
   */
  #passChars(end: number): boolean {
    const text = this.#text
    let hasEscapes = false
    let canCut = true
    let at = this.at
    while (at < end || !canCut) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) break
      canCut = true
      if (code === BACKSLASH) {
        hasEscapes = true
        canCut = !isHighSurrogate(text, at)
        at = this.#endOfEscape(at)
      } else if (code >= SPACE) {
        canCut = code < HIGH_SURROGATE_MIN || code > HIGH_SURROGATE_MAX
        at += 1
      } else {
        this.at = at
        if (at >= text.length) this.#fail('syntax', 'The text ends inside a string')
        this.#fail('syntax', `The control character ${this.#nextShown()} must be escaped`)
      }
    }
    this.at = at
    return hasEscapes
  }

  #endOfEscape(at: number): number {
    const letter = this.#text.charAt(at + 1)
    if (letter !== '' && SIMPLE_ESCAPES.includes(letter)) return at + 2
    let end = at + 2
    while (end < at + 6 && isHexDigit(this.#text.charCodeAt(end))) end += 1
    if (letter === 'u' && end === at + 6) return end
    this.at = at
    return this.#fail('syntax', 'A string contains an invalid escape')
  }

  #number(): string {
    NUMBER.lastIndex = this.at
    const token = NUMBER.exec(this.#text)?.[0]
    if (token === undefined) return this.#fail('syntax', 'A minus sign must be followed by a digit')
    if (!PLAIN_NUMBER.test(token) && !fitsDouble(token)) {
      const became = Number(token)
      const loss = Number.isFinite(became) ? `would become ${became}` : 'is out of range'
      this.#fail('value', `The number ${shorten(token)} ${loss}; send it as a string`)
    }
    this.at += token.length
    this.#charsDone += token.length
    return token
  }

  #literal(): string {
    const word = ['true', 'false', 'null'].find((known) => this.#text.startsWith(known, this.at))
    if (word === undefined) return this.#unexpected('a value')
    this.at += word.length
    return word
  }

  #skipSpace(): void {
    // Most tokens have no whitespace between them.
    if (this.#text.charCodeAt(this.at) > SPACE) return
    SPACES.lastIndex = this.at
    SPACES.test(this.#text)
    this.#charsDone += SPACES.lastIndex - this.at
    this.at = SPACES.lastIndex
  }

  #take(char: string): boolean {
    if (this.#text.charAt(this.at) !== char) return false
    this.at += 1
    return true
  }

  refuseRepeated(key: string, at: number): never {
    this.at = at
    return this.#fail('value', `The key ${quoted(key)} appears twice in the same object`)
  }

  #unexpected(wanted: string): never {
    const isAtEnd = this.at >= this.#text.length
    const found = isAtEnd ? 'The text ends' : `Unexpected ${this.#nextShown()}`
    return this.#fail('syntax', `${found}, expected ${wanted}`)
  }

  #fail(kind: JsonFault['kind'], sentence: string): never {
    const offset = Buffer.byteLength(this.#text.slice(0, this.at))
    const message = kind === 'syntax' ? `${sentence}, at byte ${offset}.` : `${sentence}.`
    throw new StrictJsonError({ kind, path: jsonPointer(this.path), offset, message })
  }

  #nextShown(): string {
    return quoted(String.fromCodePoint(this.#text.codePointAt(this.at) ?? 0))
  }
}

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const SIMPLE_ESCAPES = '"\\/bfnrt'
const SPACES = /[ \t\n\r]*/y
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
/** A double can represent every decimal of at most 15 digits without an exponent. */
const PLAIN_NUMBER = /^-?[\d.]{1,15}$/

const HIGH_SURROGATE_MIN = 0xd800
const HIGH_SURROGATE_MAX = 0xdbff

/** Whether the escape at `at` is the first half of a pair. */
function isHighSurrogate(text: string, at: number): boolean {
  if (text.charAt(at + 1) !== 'u') return false
  const code = Number.parseInt(text.slice(at + 2, at + 6), 16)
  return code >= HIGH_SURROGATE_MIN && code <= HIGH_SURROGATE_MAX
}

function isNumberStart(char: string): boolean {
  return char === '-' || (char >= '0' && char <= '9')
}

function isHexDigit(code: number): boolean {
  const lower = code | 0x20
  return (code >= 0x30 && code <= 0x39) || (lower >= 0x61 && lower <= 0x66)
}
