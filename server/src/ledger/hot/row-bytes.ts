import { DAY_MS } from '../../platform/time/time-units.ts'
import { formatUtcMs } from '../../platform/time/utc-time.ts'

/*
 * Writers for the parts of a row. They write straight into the output buffer and create no strings or
 * objects. Each writes at a position, where the caller ensures there is room, and returns the one after it.
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
