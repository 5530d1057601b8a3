const OID = { uuid: 2950, int8: 20, text: 25, bytea: 17, timestamptz: 1184 } as const

const LENGTH_BYTES = 4
/** The number of dimensions, the null flag, the element type, the length and the first index. */
const ARRAY_HEADER_BYTES = 20
const NULL_LENGTH = -1
const BYTES_MIN = 256 * 1_024
/** The buffer of a statement larger than this is not kept for the next one. */
const BYTES_KEPT_MAX = 8 * 1_024 * 1_024

/** Milliseconds from 1970 to 2000, the epoch of PostgreSQL. */
const EPOCH_MS = 946_684_800_000

type Write<T> = (target: Buffer, value: T, at: number) => void

/**
 * Creates the messages that run a prepared statement on a whole batch: Bind with one array per column in
 * PostgreSQL's binary format, written directly from the rows, then Execute and Sync.
 *
 * `pg` can send the same, but it quotes and escapes every array element, or repeatedly copies
 * a finished array while its buffer grows. This class reuses its buffer, so a message is
 * valid only until the next `begin`.
 */
export class BindWriter {
  #bytes = Buffer.allocUnsafeSlow(BYTES_MIN)
  #at = 0
  #countAt = 0
  #count = 0

  begin(statement: string): this {
    if (this.#bytes.length > BYTES_KEPT_MAX) this.#bytes = Buffer.allocUnsafeSlow(BYTES_MIN)
    this.#at = 0
    this.#count = 0
    this.#reserve(statement.length * 3 + 32)
    this.#bytes.write('B', 0, 'latin1')
    // After the length: an empty portal name, the statement name, and one format for all parameters (binary).
    this.#at = 6
    this.#bytes[5] = 0
    this.#at += this.#bytes.write(statement, this.#at, 'utf8')
    this.#bytes[this.#at] = 0
    this.#bytes.writeInt16BE(1, this.#at + 1)
    this.#bytes.writeInt16BE(1, this.#at + 3)
    this.#countAt = this.#at + 5
    this.#at += 7
    return this
  }

  /** UUIDs as text, with or without hyphens. */
  uuids<Row>(rows: readonly Row[], pick: (row: Row) => string | null): this {
    return this.#fixed(rows, pick, { oid: OID.uuid, bytes: 16, write: writeHex })
  }

  /** Bytes in lowercase hex, all of the same length. */
  hexes<Row>(rows: readonly Row[], pick: (row: Row) => string, bytes: number): this {
    return this.#fixed(rows, pick, { oid: OID.bytea, bytes, write: writeHex })
  }

  /** Counts: never negative, and below 2^53. */
  int8s<Row>(rows: readonly Row[], pick: (row: Row) => number): this {
    return this.#fixed(rows, pick, { oid: OID.int8, bytes: 8, write: writeCount })
  }

  /** Times in milliseconds. */
  timestamptzs<Row>(rows: readonly Row[], pick: (row: Row) => number): this {
    return this.#fixed(rows, pick, { oid: OID.timestamptz, bytes: 8, write: writeInstant })
  }

  texts<Row>(rows: readonly Row[], pick: (row: Row) => string | null): this {
    const start = this.#openArray(OID.text, rows.length)
    for (const row of rows) {
      const value = pick(row)
      // UTF-8 needs at most three bytes per UTF-16 unit.
      this.#reserve(LENGTH_BYTES + (value === null ? 0 : value.length * 3))
      const at = this.#at
      const length = value === null ? NULL_LENGTH : writeText(this.#bytes, value, at + LENGTH_BYTES)
      this.#bytes.writeInt32BE(length, at)
      this.#at = at + LENGTH_BYTES + Math.max(0, length)
    }
    return this.#closeArray(start)
  }

  /** Returns all messages, ready to send. */
  finish(): Buffer {
    this.#reserve(32)
    this.#bytes.writeInt16BE(this.#count, this.#countAt)
    // Results in text format.
    this.#at = this.#bytes.writeInt16BE(0, this.#at)
    this.#bytes.writeInt32BE(this.#at - 1, 1)
    // Execute the unnamed portal without a row limit, then Sync.
    this.#at += this.#bytes.write('E\0\0\0\t\0\0\0\0\0S\0\0\0\u0004', this.#at, 'latin1')
    return this.#bytes.subarray(0, this.#at)
  }

  #fixed<Row, T extends string | number>(
    rows: readonly Row[],
    pick: (row: Row) => T | null,
    { oid, bytes, write }: { oid: number; bytes: number; write: Write<T> },
  ): this {
    const start = this.#openArray(oid, rows.length)
    this.#reserve(rows.length * (LENGTH_BYTES + bytes))
    const target = this.#bytes
    let at = this.#at
    for (const row of rows) {
      const value = pick(row)
      at = target.writeInt32BE(value === null ? NULL_LENGTH : bytes, at)
      if (value === null) continue
      write(target, value, at)
      at += bytes
    }
    this.#at = at
    return this.#closeArray(start)
  }

  #openArray(oid: number, length: number): number {
    this.#reserve(LENGTH_BYTES + ARRAY_HEADER_BYTES)
    const start = this.#at
    const header = [1, 1, oid, length, 1]
    let at = start + LENGTH_BYTES
    for (const word of header) at = this.#bytes.writeInt32BE(word, at)
    this.#at = at
    return start
  }

  #closeArray(start: number): this {
    this.#bytes.writeInt32BE(this.#at - start - LENGTH_BYTES, start)
    this.#count += 1
    return this
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#at + bytes))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}

const HYPHEN = 0x2d
const ZERO = 0x30
const LETTER_A = 0x61

/** Skips hyphens. A loop, because a native call for so few bytes takes several times longer. */
function writeHex(target: Buffer, value: string, at: number): void {
  let offset = at
  let index = 0
  while (index < value.length) {
    const high = value.charCodeAt(index)
    if (high === HYPHEN) {
      index += 1
      continue
    }
    target[offset] = (nibble(high) << 4) | nibble(value.charCodeAt(index + 1))
    offset += 1
    index += 2
  }
}

function nibble(code: number): number {
  return code >= LETTER_A ? code - LETTER_A + 10 : code - ZERO
}

function writeCount(target: Buffer, value: number, at: number): void {
  target.writeUInt32BE(Math.floor(value / 0x1_0000_0000), at)
  // The conversion to unsigned 32 bits is the remainder, without a floating-point division.
  target.writeUInt32BE(value >>> 0, at + 4)
}

function writeInstant(target: Buffer, value: number, at: number): void {
  // For distant years, microseconds exceed the integers that a double can represent, so use a bigint.
  target.writeBigInt64BE(BigInt(value - EPOCH_MS) * 1_000n, at)
}

const SHORT_LENGTH_MAX = 24
const ASCII_MAX = 0x7f

/**
 * Returns the number of bytes written. Short ASCII is written in a loop, for
 * the same reason as in `writeHex`.
 */
function writeText(target: Buffer, value: string, at: number): number {
  if (value.length > SHORT_LENGTH_MAX) return target.write(value, at, 'utf8')
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index)
    if (code > ASCII_MAX) return target.write(value, at, 'utf8')
    target[at + index] = code
  }
  return value.length
}
