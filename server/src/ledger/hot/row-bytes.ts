import { DAY_MS } from '../../platform/time/time-units.ts'
import { formatUtcMs } from '../../platform/time/utc-time.ts'

/*
 * Readers and writers for the parts of a row. The writers write straight into the output buffer and create no strings or
 * objects. Each works at a position, where the caller ensures there is room, and returns the one after it.
 */

const DIGITS = Buffer.from('0123456789abcdef')
const HIGH_DIGIT = Uint8Array.from({ length: 256 }, (_, byte) => DIGITS[byte >> 4] ?? 0)
const LOW_DIGIT = Uint8Array.from({ length: 256 }, (_, byte) => DIGITS[byte & 15] ?? 0)
const ZERO = 0x30
const DASH = 0x2d
/** Up to this size, a loop is faster than the call overhead of `Buffer.copy`. */
const LOOP_BYTES_MAX = 32

export function putBytes(
  out: Buffer,
  at: number,
  bytes: Buffer,
  from = 0,
  to = bytes.length,
): number {
  const end = at + to - from
  if (to - from > LOOP_BYTES_MAX) {
    bytes.copy(out, at, from, to)
    return end
  }
  for (let index = from; index < to; index += 1) out[at + index - from] = bytes[index] ?? 0
  return end
}

export function putHex(out: Buffer, at: number, bytes: Buffer, from: number, to: number): number {
  let end = at
  for (let index = from; index < to; index += 1) {
    const byte = bytes[index] ?? 0
    out[end] = HIGH_DIGIT[byte] ?? 0
    out[end + 1] = LOW_DIGIT[byte] ?? 0
    end += 2
  }
  return end
}

export function putUuid(out: Buffer, at: number, bytes: Buffer, from: number): number {
  let end = putHex(out, at, bytes, from, from + 4)
  for (let part = from + 4; part < from + 10; part += 2) {
    out[end] = DASH
    end = putHex(out, end + 1, bytes, part, part + 2)
  }
  out[end] = DASH
  return putHex(out, end + 1, bytes, from + 10, from + 16)
}

/** Writes a non-negative integer. */
export function putNumber(out: Buffer, at: number, number: number): number {
  let end = at + 1
  for (let bound = 10; bound <= number; bound *= 10) end += 1
  let rest = number
  for (let index = end - 1; index >= at; index -= 1) {
    const digit = rest % 10
    out[index] = ZERO + digit
    rest = (rest - digit) / 10
  }
  return end
}

/** Size of the cache of recent days. `formatUtcMs` has a similar one. */
const DATES_CACHED_MAX = 64
const cachedDays: number[] = Array(DATES_CACHED_MAX).fill(Number.NaN)
const cachedDates: Buffer[] = Array(DATES_CACHED_MAX).fill(Buffer.alloc(0))

/** Writes the same text as `formatUtcMs`. */
export function putTime(out: Buffer, at: number, ms: number): number {
  const day = Math.floor(ms / DAY_MS)
  const slot = day & (DATES_CACHED_MAX - 1)
  if (day !== cachedDays[slot]) {
    cachedDates[slot] = Buffer.from(formatUtcMs(day * DAY_MS))
    cachedDays[slot] = day
  }
  putBytes(out, at, cachedDates[slot] ?? DIGITS)
  const msOfDay = ms - day * DAY_MS
  const second = Math.floor(msOfDay / 1_000)
  const minute = Math.floor(second / 60)
  const hour = Math.floor(minute / 60)
  putTwoDigits(out, at + 11, hour)
  putTwoDigits(out, at + 14, minute - hour * 60)
  putTwoDigits(out, at + 17, second - minute * 60)
  const thousandths = msOfDay - second * 1_000
  const tenths = Math.floor(thousandths / 100)
  out[at + 20] = ZERO + tenths
  putTwoDigits(out, at + 21, thousandths - tenths * 100)
  return at + 24
}

function putTwoDigits(out: Buffer, at: number, number: number): void {
  const tens = Math.floor(number / 10)
  out[at] = ZERO + tens
  out[at + 1] = ZERO + number - tens * 10
}

/** Whether these bytes are at a position. */
export function isBytesAt(bytes: Buffer, at: number, expected: Buffer): boolean {
  for (let index = 0; index < expected.length; index += 1) {
    if (bytes[at + index] !== expected[index]) return false
  }
  return true
}

/** Like `isBytesAt`, for a text with one character per byte. */
export function isTextAt(bytes: Buffer, at: number, expected: string): boolean {
  for (let index = 0; index < expected.length; index += 1) {
    if (bytes[at + index] !== expected.charCodeAt(index)) return false
  }
  return true
}

const NO_DIGIT = 16
const DIGIT_VALUES = new Uint8Array(256).fill(NO_DIGIT)
for (const [value, digit] of DIGITS.entries()) DIGIT_VALUES[digit] = value

/** Fills `out` from lowercase hex digits. False if there are other characters. */
export function readHexBytes(bytes: Buffer, at: number, out: Buffer): boolean {
  let all = 0
  for (let index = 0; index < out.length; index += 1) {
    const high = DIGIT_VALUES[bytes[at + 2 * index] ?? 0] ?? NO_DIGIT
    const low = DIGIT_VALUES[bytes[at + 2 * index + 1] ?? 0] ?? NO_DIGIT
    all |= high | low
    out[index] = high * 16 + low
  }
  return all < NO_DIGIT
}
