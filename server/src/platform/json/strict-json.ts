import { isUtf8 } from 'node:buffer'

import { JSON_DEPTH_MAX, type JsonFault, type JsonResult } from './json-fault.ts'
import { fitsDouble } from './json-number.ts'
import { type JsonReaderOptions, readTokens } from './json-reader.ts'
import type { JsonSource } from './json-scanner.ts'
import { runAtOnce, runInSlices, type SliceOwner } from '../scheduling/time-slice.ts'

/** Texts up to this size are read in one go. That takes a few milliseconds, whatever they contain. */
export const JSON_AT_ONCE_BYTES_MAX = 16 * 1_024

/**
 * Reads a JSON text of any size. The result is a fault where `JSON.parse` would guess or lose something:
 * duplicate keys, numbers that a double can't preserve, NUL, lone surrogates, excessive depth. The caller
 * has checked that the body is UTF-8 (`findInvalidUtf8`).
 *
 * Returns a promise only for a large text, which is read in slices that yield to the event loop, without
 * `JSON.parse`: that takes 275 ms for an object of 4 MB. Only there, the options apply.
 */
export function readJson(
  source: JsonSource,
  options: JsonReaderOptions & { owner?: SliceOwner },
): JsonResult | Promise<JsonResult> {
  const isSmall = source.end - source.start <= JSON_AT_ONCE_BYTES_MAX
  return isSmall ? readAtOnce(source) : runInSlices(readTokens(source, options), options.owner)
}

/** Reads a whole body in one go. */
export function parseStrictJson(bytes: Buffer): JsonResult {
  const fault = findInvalidUtf8(bytes)
  return fault ? { value: null, fault } : readAtOnce({ bytes, start: 0, end: bytes.length })
}

/**
 * `JSON.parse` creates the value (it makes a key `__proto__` an ordinary property), and one scan over the
 * bytes looks for anything suspect. Only a suspect text goes to the slow reader, which knows the whole
 * grammar, decides, and locates the fault. CPU time for an event of 544 bytes: 2.3 µs for decoding and
 * `JSON.parse`, 3.6 µs for this; a handwritten parser took 4 to 6 µs before it checked anything.
 */
function readAtOnce(source: JsonSource): JsonResult {
  const text = source.bytes.toString('utf8', source.start, source.end)
  // JSON.parse can't be trusted with escaped keys: see json-reader.ts.
  const value = text.includes('\\') ? undefined : parseOrUndefined(text)
  if (value !== undefined) {
    const keysWritten = countKeysWritten(source)
    // JSON.parse keeps only one of two equal keys, so the counts differ if and only if a key is repeated.
    if (keysWritten !== SUSPECT && keysWritten === countKeys(value)) return { value, fault: null }
  }
  return runAtOnce(readTokens(source))
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const SUSPECT = -1

const QUOTE = 0x22
const PLUS = 0x2b
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const LETTER_E = 0x65
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const LOWER_CASE_BIT = 0x20

/** The number of keys in a text that `JSON.parse` accepted, or SUSPECT if the slow reader must decide. */
function countKeysWritten({ bytes, start, end }: JsonSource): number {
  let keys = 0
  let depth = 0
  let at = start
  while (at < end) {
    const byte = bytes[at] ?? 0
    if (byte === QUOTE) {
      at = endOfString(bytes, at + 1)
      continue
    }
    if (byte <= NINE && byte >= MINUS) {
      at = endOfNumber(bytes, at)
      if (at === SUSPECT) return SUSPECT
      continue
    }
    if (byte === COLON) {
      keys += 1
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1
      if (depth > JSON_DEPTH_MAX) return SUSPECT
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth -= 1
    }
    at += 1
  }
  return keys
}

/** The position after the string whose content starts at `at`. The text has no escapes. */
function endOfString(bytes: Buffer, at: number): number {
  let end = at
  while (end < bytes.length && bytes[end] !== QUOTE) end += 1
  return end + 1
}

/** A double preserves every decimal of at most 15 digits without an exponent. */
const PLAIN_NUMBER_BYTES_MAX = 15

/** The position after the number at `start`, or SUSPECT if a double can't preserve it. */
function endOfNumber(bytes: Buffer, start: number): number {
  let isPlain = true
  let at = start + 1
  for (;;) {
    const byte = bytes[at] ?? 0
    if ((byte | LOWER_CASE_BIT) === LETTER_E || byte === PLUS || byte === MINUS) isPlain = false
    else if (byte !== POINT && (byte < ZERO || byte > NINE)) break
    at += 1
  }
  if (isPlain && at - start <= PLAIN_NUMBER_BYTES_MAX) return at
  return fitsDouble(bytes.toString('latin1', start, at)) ? at : SUSPECT
}

/** Recursion is safe here, because the scan has limited the depth. */
function countKeys(value: unknown): number {
  let keys = 0
  if (Array.isArray(value)) {
    for (const item of value) keys += countKeys(item)
  } else if (isObject(value)) {
    // A loop over keys takes less than half the time of Object.keys, which creates an array.
    for (const key in value) keys += 1 + countKeys(value[key])
  }
  return keys
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Small enough to compare byte by byte. */
const UTF8_WINDOW_BYTES = 1_024
/** The length of the longest character. */
const CHARACTER_BYTES_MAX = 4

/**
 * Finds where the bytes stop being UTF-8. Comparing all of a large body would block the thread, so it halves the range
 * that contains the fault first.
 */
export function findInvalidUtf8(bytes: Buffer): JsonFault | null {
  if (isUtf8(bytes)) return null
  let start = 0
  let end = bytes.length
  while (end - start > UTF8_WINDOW_BYTES) {
    const middle = characterStart(bytes, (start + end) >> 1)
    if (isUtf8(bytes.subarray(start, middle))) start = middle
    else end = middle
  }
  const window = bytes.subarray(start, end + CHARACTER_BYTES_MAX)
  // Decoding inserts U+FFFD at the fault, so encoding the result again differs.
  const encodedAgain = Buffer.from(window.toString('utf8'))
  let length = 0
  while (length < window.length && window[length] === encodedAgain[length]) length += 1
  const offset = start + length
  const message = `The text is not valid UTF-8 at byte ${offset}.`
  return { kind: 'syntax', path: '', offset, message }
}

/** The start of the character that contains the byte, if the bytes are UTF-8. */
function characterStart(bytes: Buffer, at: number): number {
  let start = at
  const startMin = at - CHARACTER_BYTES_MAX + 1
  while (start > startMin && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1
  return start
}
