import { isHeldByDouble } from './json-number.ts'

/** Levels of objects and arrays; the outermost container is level 1. */
export const JSON_DEPTH_MAX = 32

/** The first fault of a text in reading order. The message is a sentence for its sender. */
export type JsonFault = {
  kind: 'syntax' | 'value'
  path: string
  offset: number
  message: string
}

/**
 * Reads a text by the grammar of RFC 8259 and our limits, and builds nothing. This is the slow
 * reader behind `parseStrictJson`: it runs for suspect texts only, so it may take its time to be
 * exact about the place. Null when nothing is wrong.
 */
export function findJsonFault(text: string): JsonFault | null {
  const reader: Reader = { text, at: 0, path: [] }
  try {
    if (text.startsWith('\ufeff')) fail(reader, 'syntax', 'The text starts with a byte order mark')
    readValue(reader)
    if (reader.at < text.length)
      fail(reader, 'syntax', `Unexpected ${nextShown(reader)} after the value`)
    return null
  } catch (error) {
    if (error instanceof Found) return error.fault
    throw error
  }
}

type Reader = { text: string; at: number; path: (string | number)[] }

/** Carries a fault out of the recursion; it never leaves this file. */
class Found extends Error {
  readonly fault: JsonFault
  constructor(fault: JsonFault) {
    super(fault.message)
    this.fault = fault
  }
}

function readValue(reader: Reader): void {
  skipSpace(reader)
  const char = reader.text.charAt(reader.at)
  if (char === '{') readObject(reader)
  else if (char === '[') readArray(reader)
  else if (char === '"') readString(reader, 'A string')
  else if (char === '-' || (char >= '0' && char <= '9')) readNumber(reader)
  else readLiteral(reader)
  skipSpace(reader)
}

function readObject(reader: Reader): void {
  const keys = new Set<string>()
  enter(reader)
  if (take(reader, '}')) return
  do {
    skipSpace(reader)
    const keyAt = reader.at
    if (reader.text.charAt(keyAt) !== '"') unexpected(reader, 'a key in double quotes')
    const key = readString(reader, 'A key')
    reader.path.push(key)
    if (keys.has(key)) {
      reader.at = keyAt
      fail(reader, 'value', `The key ${shown(key)} appears twice in the same object`)
    }
    keys.add(key)
    skipSpace(reader)
    if (!take(reader, ':')) unexpected(reader, 'a colon')
    readValue(reader)
    reader.path.pop()
  } while (take(reader, ','))
  if (!take(reader, '}')) unexpected(reader, 'a comma or "}"')
}

function readArray(reader: Reader): void {
  enter(reader)
  if (take(reader, ']')) return
  let index = 0
  do {
    reader.path.push(index)
    readValue(reader)
    reader.path.pop()
    index += 1
  } while (take(reader, ','))
  if (!take(reader, ']')) unexpected(reader, 'a comma or "]"')
}

/** Steps into a container. The path has one entry for each container around this one. */
function enter(reader: Reader): void {
  if (reader.path.length >= JSON_DEPTH_MAX) {
    fail(
      reader,
      'value',
      `Objects and arrays may be nested ${JSON_DEPTH_MAX} levels deep, not deeper`,
    )
  }
  reader.at += 1
  skipSpace(reader)
}

/** The string's value. `noun` begins the sentence of a fault. */
function readString(reader: Reader, noun: string): string {
  const { text, at: start } = reader
  reader.at += 1
  for (;;) {
    reader.at = endOfPlainChars(reader)
    const char = text.charAt(reader.at)
    if (char === '"') break
    if (char === '') fail(reader, 'syntax', 'The text ends inside a string')
    if (char !== '\\') {
      fail(reader, 'syntax', `The control character ${nextShown(reader)} must be escaped`)
    }
    readEscape(reader)
  }
  reader.at += 1

  const string = String(JSON.parse(text.slice(start, reader.at)))
  const forbidden = string.includes('\0')
    ? 'the character U+0000'
    : string.isWellFormed()
      ? null
      : 'half of a surrogate pair'
  if (forbidden !== null) {
    reader.at = start
    fail(reader, 'value', `${noun} must not contain ${forbidden}`)
  }
  return string
}

// oxlint-disable-next-line no-control-regex -- JSON forbids just these in a string.
const PLAIN_CHARS = /[^"\\\u0000-\u001f]*/y

function endOfPlainChars(reader: Reader): number {
  PLAIN_CHARS.lastIndex = reader.at
  PLAIN_CHARS.test(reader.text)
  return PLAIN_CHARS.lastIndex
}

const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

function readEscape(reader: Reader): void {
  ESCAPE.lastIndex = reader.at
  if (!ESCAPE.test(reader.text))
    fail(reader, 'syntax', 'A string holds an escape that JSON does not know')
  reader.at = ESCAPE.lastIndex
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y

function readNumber(reader: Reader): void {
  NUMBER.lastIndex = reader.at
  const token = NUMBER.exec(reader.text)?.[0]
  if (token === undefined) return fail(reader, 'syntax', 'A minus sign must be followed by a digit')
  if (!isHeldByDouble(token)) {
    const became = Number(token)
    const loss = Number.isFinite(became) ? `would become ${became}` : 'is out of range'
    fail(reader, 'value', `The number ${shorten(token)} ${loss}: send it as a string`)
  }
  reader.at = NUMBER.lastIndex
}

function readLiteral(reader: Reader): void {
  const literal = ['true', 'false', 'null'].find((word) => reader.text.startsWith(word, reader.at))
  if (literal === undefined) return unexpected(reader, 'a value')
  reader.at += literal.length
}

const SPACE = /[ \t\n\r]*/y

function skipSpace(reader: Reader): void {
  SPACE.lastIndex = reader.at
  SPACE.test(reader.text)
  reader.at = SPACE.lastIndex
}

function take(reader: Reader, char: string): boolean {
  if (reader.text.charAt(reader.at) !== char) return false
  reader.at += 1
  return true
}

function unexpected(reader: Reader, wanted: string): never {
  const isAtEnd = reader.at >= reader.text.length
  const met = isAtEnd ? 'The text ends' : `Unexpected ${nextShown(reader)}`
  return fail(reader, 'syntax', `${met} where ${wanted} should be`)
}

function fail(reader: Reader, kind: JsonFault['kind'], sentence: string): never {
  const offset = Buffer.byteLength(reader.text.slice(0, reader.at))
  const message = kind === 'syntax' ? `${sentence}, at byte ${offset}.` : `${sentence}.`
  throw new Found({ kind, path: pointer(reader.path), offset, message })
}

/** A path goes into answers and logs, and keys may be as long as a body. */
const PATH_CHARS_MAX = 500
const TOKEN_CHARS_MAX = 40

function pointer(path: readonly (string | number)[]): string {
  const whole = path
    .map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('')
  return whole.length > PATH_CHARS_MAX ? `${whole.slice(0, PATH_CHARS_MAX).toWellFormed()}…` : whole
}

function nextShown({ text, at }: Reader): string {
  return shown(String.fromCodePoint(text.codePointAt(at) ?? 0))
}

function shown(text: string): string {
  return JSON.stringify(shorten(text))
}

function shorten(text: string): string {
  return text.length > TOKEN_CHARS_MAX ? `${text.slice(0, TOKEN_CHARS_MAX)}…` : text
}
