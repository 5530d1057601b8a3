import { JSON_DEPTH_MAX, type JsonFault, jsonPointer, quoted, shorten } from './json-fault.ts'
import { fitsDouble } from './json-number.ts'

/** A text within a body: all of it, one item of an array, or what is left without the items. */
export type JsonSource = {
  bytes: Buffer
  start: number
  end: number
  /** An item is followed by a comma or bracket, not by the end of the text. */
  isItem?: boolean
  /** What the body has at this position, but `bytes` doesn't. */
  gap?: { at: number; bytes: number }
}

/** Ends the reading of a text. `readTokens` catches it. */
export class JsonFaultError extends Error {
  override name = 'JsonFaultError'
  readonly fault: JsonFault

  constructor(fault: JsonFault) {
    super(fault.message)
    this.fault = fault
  }
}

/** What error messages call a string. */
type StringNoun = 'A key' | 'A string'

/** The distance between two yields. However dense the tokens are, it takes less than 2 ms. */
const CHARS_PER_STEP = 8_192

/**
 * Scans the tokens of a JSON text one by one, and rejects what RFC 8259 or our limits don't allow.
 * `json-reader.ts` builds values from them.
 */
export class JsonScanner {
  readonly #source: JsonSource
  readonly #text: string
  /** Keys and indexes of the containers around `at`. */
  readonly path: (string | number)[] = []
  at = 0
  #stepEnd = CHARS_PER_STEP

  constructor(source: JsonSource) {
    const { bytes, start, end, isItem } = source
    this.#source = source
    // An empty item is read with the comma or bracket after it, which is the unexpected character.
    this.#text = bytes.toString('utf8', start, isItem && end === start ? end + 1 : end)
  }

  begin(): void {
    if (this.#text.startsWith('\ufeff') && !this.#source.isItem) {
      this.#fail('syntax', 'The text starts with a byte order mark')
    }
    this.#skipSpace()
  }

  end(): void {
    this.#skipSpace()
    if (this.at === this.#text.length) return
    if (this.#source.isItem) this.#unexpected('a comma or "]"')
    this.#fail('syntax', `Unexpected ${this.#nextShown()} after the value`)
  }

  /** The next character. */
  char(): string {
    return this.#text.charAt(this.at)
  }

  /** Whether it is time to yield. Call this after each value, with the length of any text it became. */
  isStepOver(chars = 0): boolean {
    this.#stepEnd -= chars
    if (this.at < this.#stepEnd) return false
    this.#stepEnd = this.at + CHARS_PER_STEP
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

  /** The token of a short string without escapes, which is also its RFC 8785 text. Otherwise null. */
  plainString(): string | null {
    const text = this.#text
    const start = this.at
    // A regular expression is faster for long strings, and this loop for short ones.
    const end = start + PLAIN_CHARS_MAX
    let at = start + 1
    let code = text.charCodeAt(at)
    while (code >= SPACE && code !== QUOTE && code !== BACKSLASH && at < end) {
      at += 1
      code = text.charCodeAt(at)
    }
    if (code !== QUOTE) return null
    this.at = at + 1
    return text.slice(start, this.at)
  }

  /** The value of any string. Null if it has more than one part. */
  string(noun: StringNoun): string | null {
    const start = this.at
    this.at += 1
    const value = this.#stringPart()
    if (this.#take('"')) return this.#checked(value, { noun, start })
    this.at = start
    return null
  }

  /** Like `string`, for many parts. Yields between them, because four million characters take up to 75 ms. */
  *longString(noun: StringNoun): Generator<void, string, void> {
    const start = this.at
    const parts: string[] = []
    this.at += 1
    while (!this.#take('"')) {
      parts.push(this.#stringPart())
      yield
    }
    return this.#checked(parts.join(''), { noun, start })
  }

  /** A part can end between the halves of a surrogate pair. */
  #stringPart(): string {
    const from = this.at
    STRING_PART.lastIndex = from
    STRING_PART.test(this.#text)
    this.at = STRING_PART.lastIndex
    if (this.at === from) this.#failInString()
    return String(JSON.parse(`"${this.#text.slice(from, this.at)}"`))
  }

  /** `noun` starts the error message; `start` is where the string begins. */
  #checked(value: string, { noun, start }: { noun: StringNoun; start: number }): string {
    const hasNul = value.includes('\0')
    if (!hasNul && value.isWellFormed()) return value
    const forbidden = hasNul ? 'the character U+0000' : 'an unpaired surrogate'
    this.at = start
    return this.#fail('value', `${noun} must not contain ${forbidden}`)
  }

  #failInString(): never {
    if (this.at >= this.#text.length) this.#fail('syntax', 'The text ends inside a string')
    if (this.char() === '\\') {
      this.#fail('syntax', 'A string contains an invalid escape')
    }
    return this.#fail('syntax', `The control character ${this.#nextShown()} must be escaped`)
  }

  number(): number {
    NUMBER.lastIndex = this.at
    const token = NUMBER.exec(this.#text)?.[0]
    if (token === undefined) return this.#fail('syntax', 'A minus sign must be followed by a digit')
    const value = Number(token)
    if (!PLAIN_NUMBER.test(token) && !fitsDouble(token)) {
      const loss = Number.isFinite(value) ? `would become ${value}` : 'is out of range'
      this.#fail('value', `The number ${shorten(token)} ${loss}; send it as a string`)
    }
    this.at += token.length
    return value
  }

  /** `true`, `false` or `null`. */
  literal(): string {
    const word = LITERALS.find((known) => this.#text.startsWith(known, this.at))
    if (word === undefined) return this.#unexpected('a value')
    this.at += word.length
    return word
  }

  #skipSpace(): void {
    // Most tokens have no whitespace between them.
    if (this.#text.charCodeAt(this.at) > SPACE) return
    SPACES.lastIndex = this.at
    SPACES.test(this.#text)
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
    const { start, gap } = this.#source
    let offset = start + Buffer.byteLength(this.#text.slice(0, this.at))
    if (gap && offset >= gap.at) offset += gap.bytes
    const message = kind === 'syntax' ? `${sentence}, at byte ${offset}.` : `${sentence}.`
    throw new JsonFaultError({ kind, path: jsonPointer(this.path), offset, message })
  }

  #nextShown(): string {
    return quoted(String.fromCodePoint(this.#text.codePointAt(this.at) ?? 0))
  }
}

const PLAIN_CHARS_MAX = 8_192

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const LITERALS = ['true', 'false', 'null']
const SPACES = /[ \t\n\r]*/y
/** Up to 64,000 characters. A longer part would need a large stack and block the thread. */
const STRING_PART = /(?:[ !#-[\]-\uffff]{1,64}|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})){0,1000}/y
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
/** A double can represent every decimal of at most 15 digits without an exponent. */
const PLAIN_NUMBER = /^-?[\d.]{1,15}$/
