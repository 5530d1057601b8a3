/**
 * Arrays in PostgreSQL's binary form, for statements that carry a whole batch. The text form that
 * `pg` makes of an array quotes and escapes every element, here and again in the server.
 */
const OID = { uuid: 2950, int8: 20, text: 25, bytea: 17, timestamptz: 1184 } as const

const HEADER_BYTES = 20
const NULL_LENGTH = -1

/** Milliseconds between 1970 and 2000, where PostgreSQL's time begins. */
const EPOCH_MS = 946_684_800_000

type Fixed<T> = { bytes: number; write: (target: Buffer, value: T, at: number) => void }

const HYPHEN = 0x2d
const LETTER_A = 0x61
const ZERO = 0x30

/** By hand, because a native call for 16 bytes costs several times the loop. */
const UUID: Fixed<string> = {
  bytes: 16,
  write: (target, value, at) => {
    let place = at
    let index = 0
    while (index < value.length) {
      const high = value.charCodeAt(index)
      if (high === HYPHEN) {
        index += 1
        continue
      }
      target[place] = (nibble(high) << 4) | nibble(value.charCodeAt(index + 1))
      place += 1
      index += 2
    }
  },
}

function nibble(code: number): number {
  return code >= LETTER_A ? code - LETTER_A + 10 : code - ZERO
}

const INT8: Fixed<number> = {
  bytes: 8,
  // Counts only: never negative, and below 2^53.
  write: (target, value, at) => {
    target.writeUInt32BE(Math.floor(value / 0x1_0000_0000), at)
    target.writeUInt32BE(value % 0x1_0000_0000, at + 4)
  },
}

const TIMESTAMPTZ: Fixed<number> = {
  bytes: 8,
  // Microseconds exceed a double's whole numbers for far-off years, so this one is a bigint.
  write: (target, value, at) => {
    target.writeBigInt64BE(BigInt(value - EPOCH_MS) * 1_000n, at)
  },
}

/** Uuids as their text, with or without hyphens. */
export const uuidArray = (values: readonly (string | null)[]) => fixedArray(OID.uuid, UUID, values)
export const int8Array = (values: readonly number[]) => fixedArray(OID.int8, INT8, values)
/** Instants in milliseconds. */
export const timestamptzArray = (values: readonly number[]) =>
  fixedArray(OID.timestamptz, TIMESTAMPTZ, values)

/** Bytes given in hex, all of the same length. */
export const hexArray = (values: readonly string[], bytes: number) =>
  fixedArray(
    OID.bytea,
    { bytes, write: (target, value: string, at) => target.write(value, at, bytes, 'hex') },
    values,
  )

export function textArray(values: readonly (string | null)[]): Buffer {
  // UTF-8 needs at most three bytes for a UTF-16 unit: one pass instead of a measuring one before it.
  let bytesMax = HEADER_BYTES
  for (const value of values) bytesMax += 4 + (value === null ? 0 : value.length * 3)
  const target = Buffer.allocUnsafe(bytesMax)
  writeHeader(target, OID.text, values.length)
  let at = HEADER_BYTES
  for (const value of values) {
    if (value === null) {
      at = target.writeInt32BE(NULL_LENGTH, at)
      continue
    }
    const length = target.write(value, at + 4, 'utf8')
    target.writeInt32BE(length, at)
    at += 4 + length
  }
  return target.subarray(0, at)
}

function fixedArray<T>(
  oid: number,
  { bytes, write }: Fixed<T>,
  values: readonly (T | null)[],
): Buffer {
  const target = Buffer.allocUnsafe(HEADER_BYTES + values.length * (4 + bytes))
  writeHeader(target, oid, values.length)
  let at = HEADER_BYTES
  for (const value of values) {
    if (value === null) {
      at = target.writeInt32BE(NULL_LENGTH, at)
      continue
    }
    at = target.writeInt32BE(bytes, at)
    write(target, value, at)
    at += bytes
  }
  return target.subarray(0, at)
}

/** Dimensions, a flag that nulls may occur, the element's type, the length, the first index. */
function writeHeader(target: Buffer, oid: number, length: number): void {
  target.writeInt32BE(1, 0)
  target.writeInt32BE(1, 4)
  target.writeInt32BE(oid, 8)
  target.writeInt32BE(length, 12)
  target.writeInt32BE(1, 16)
}
