/**
 * Arrays in PostgreSQL's binary form, for statements that carry a whole batch: one array a column,
 * made straight from the rows. The text form that `pg` makes of an array quotes and escapes every
 * element, here and again in the server.
 */
const OID = { uuid: 2950, int8: 20, text: 25, bytea: 17, timestamptz: 1184 } as const

const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const NULL_LENGTH = -1

/** Milliseconds between 1970 and 2000, where PostgreSQL's time begins. */
const EPOCH_MS = 946_684_800_000

type Write<T> = (target: Buffer, value: T, at: number) => void

/** Uuids as their text, with or without hyphens. */
export function uuidArray<Row>(rows: readonly Row[], pick: (row: Row) => string | null): Buffer {
  return fixedArray(rows, pick, { oid: OID.uuid, bytes: 16, write: writeHex })
}

/** Bytes given in lower-case hex, all of the same length. */
export function hexArray<Row>(
  rows: readonly Row[],
  pick: (row: Row) => string,
  bytes: number,
): Buffer {
  return fixedArray(rows, pick, { oid: OID.bytea, bytes, write: writeHex })
}

/** Counts: never negative, and below 2^53. */
export function int8Array<Row>(rows: readonly Row[], pick: (row: Row) => number): Buffer {
  const write: Write<number> = (target, value, at) => {
    target.writeUInt32BE(Math.floor(value / 0x1_0000_0000), at)
    target.writeUInt32BE(value % 0x1_0000_0000, at + 4)
  }
  return fixedArray(rows, pick, { oid: OID.int8, bytes: 8, write })
}

/** Instants in milliseconds. */
export function timestamptzArray<Row>(rows: readonly Row[], pick: (row: Row) => number): Buffer {
  const write: Write<number> = (target, value, at) => {
    // Microseconds exceed a double's whole numbers for far-off years, so this one is a bigint.
    target.writeBigInt64BE(BigInt(value - EPOCH_MS) * 1_000n, at)
  }
  return fixedArray(rows, pick, { oid: OID.timestamptz, bytes: 8, write })
}

export function textArray<Row>(rows: readonly Row[], pick: (row: Row) => string | null): Buffer {
  // UTF-8 needs at most three bytes for a UTF-16 unit: one pass instead of a measuring one before it.
  let bytesMax = HEADER_BYTES
  for (const row of rows) bytesMax += LENGTH_BYTES + (pick(row)?.length ?? 0) * 3
  const target = Buffer.allocUnsafe(bytesMax)
  writeHeader(target, OID.text, rows.length)
  let at = HEADER_BYTES
  for (const row of rows) {
    const value = pick(row)
    const length = value === null ? NULL_LENGTH : writeText(target, value, at + LENGTH_BYTES)
    target.writeInt32BE(length, at)
    at += LENGTH_BYTES + Math.max(0, length)
  }
  return target.subarray(0, at)
}

function fixedArray<Row, T extends string | number>(
  rows: readonly Row[],
  pick: (row: Row) => T | null,
  { oid, bytes, write }: { oid: number; bytes: number; write: Write<T> },
): Buffer {
  const target = Buffer.allocUnsafe(HEADER_BYTES + rows.length * (LENGTH_BYTES + bytes))
  writeHeader(target, oid, rows.length)
  let at = HEADER_BYTES
  for (const row of rows) {
    const value = pick(row)
    at = target.writeInt32BE(value === null ? NULL_LENGTH : bytes, at)
    if (value === null) continue
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

const HYPHEN = 0x2d
const ZERO = 0x30
const LETTER_A = 0x61

/** By hand, hyphens skipped: a native call for so few bytes costs several times the loop. */
function writeHex(target: Buffer, value: string, at: number): void {
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
}

function nibble(code: number): number {
  return code >= LETTER_A ? code - LETTER_A + 10 : code - ZERO
}

const SHORT_LENGTH_MAX = 24
const ASCII_MAX = 0x7f

/** Returns how many bytes it took. Short ASCII by hand, for the same reason. */
function writeText(target: Buffer, value: string, at: number): number {
  if (value.length > SHORT_LENGTH_MAX) return target.write(value, at, 'utf8')
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index)
    if (code > ASCII_MAX) return target.write(value, at, 'utf8')
    target[at + index] = code
  }
  return value.length
}
