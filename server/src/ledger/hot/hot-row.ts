import assert from 'node:assert/strict'

/**
 * The columns that are never null and have a fixed size come first in every
 * row. These are their byte offsets.
 */
export const OFFSETS = {
  id: 4,
  seq: 24,
  timestamp: 36,
  receivedAt: 48,
  companyId: 60,
  hash: 80,
  prevHash: 116,
  /** The offset of the first variable-size field. */
  fields: 148,
} as const
const SIZES = [16, 8, 8, 8, 16, 32, 32] as const

/** The other columns, in order. A field is a length, which is -1 for null, followed by that many bytes. */
export const FIELD_INDEX = {
  projectId: 0,
  traceId: 1,
  category: 2,
  action: 3,
  actor: 4,
  resource: 5,
  metadata: 6,
  sealed: 7,
  salts: 8,
  /** Only rows that are read for verification have facets. */
  actorId: 9,
  actorEmail: 10,
  resourceType: 11,
  resourceId: 12,
} as const
export type Field = (typeof FIELD_INDEX)[keyof typeof FIELD_INDEX]
const FIELDS = 9
export const FIELDS_WITH_FACETS = 13

const UUID_BYTES = 16
const EPOCH_2000_MS = 946_684_800_000

/**
 * A cursor over the rows in a page's bytes, which returns the offsets of their values. Creating an object
 * for each row or value would cost more than all other work on it.
 */
export class HotRow {
  readonly bytes: Buffer
  readonly #view: DataView
  readonly #fields: number
  readonly #starts = new Int32Array(FIELDS_WITH_FACETS)
  readonly #ends = new Int32Array(FIELDS_WITH_FACETS)
  /** The offset after the row's column count. */
  start = 0
  end = 0

  constructor(bytes: Buffer, fields = FIELDS) {
    this.bytes = bytes
    this.#fields = fields
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /**
   * Moves to the row whose column count is at this offset. Returns the offset of the next row's column count.
   */
  moveTo(at: number): number {
    const view = this.#view
    assert(this.hasFixedSizes(at), 'ids and hashes have a fixed size')
    this.start = at + 2
    let offset = this.start + OFFSETS.fields
    for (let field = 0; field < this.#fields; field += 1) {
      const bytes = view.getInt32(offset)
      this.#starts[field] = bytes < 0 ? -1 : offset + 4
      offset += 4 + Math.max(0, bytes)
      this.#ends[field] = offset
    }
    this.end = offset
    return offset
  }

  /** Whether the row at this offset has hashes of 32 bytes. The table doesn't enforce it. */
  hasFixedSizes(at: number): boolean {
    const view = this.#view
    assert(view.getInt16(at) === SIZES.length + this.#fields, 'a row has the requested columns')
    let offset = at + 2
    for (const size of SIZES) {
      if (view.getInt32(offset) !== size) return false
      offset += 4 + size
    }
    return true
  }

  get seq(): number {
    return this.#readInt64(OFFSETS.seq)
  }

  get timestampMs(): number {
    return this.#readTimeMs(OFFSETS.timestamp)
  }

  get receivedAtMs(): number {
    return this.#readTimeMs(OFFSETS.receivedAt)
  }

  /** Whether both times are whole milliseconds. */
  get hasWholeMs(): boolean {
    return this.#isWholeMs(OFFSETS.timestamp) && this.#isWholeMs(OFFSETS.receivedAt)
  }

  /** Whether the row was read without its parts, because it doesn't match. An event always has salts. */
  get isStub(): boolean {
    return this.isNull(FIELD_INDEX.salts)
  }

  isNull(field: Field): boolean {
    return this.#starts[field] === -1
  }

  /** The offset of the field's bytes, or -1 if it is null. */
  startOf(field: Field): number {
    return this.#starts[field] ?? 0
  }

  endOf(field: Field): number {
    return this.#ends[field] ?? 0
  }

  /** 0 if the field is null. */
  lengthOf(field: Field): number {
    return this.isNull(field) ? 0 : this.endOf(field) - this.startOf(field)
  }

  readText(field: Field): string | null {
    if (this.isNull(field)) return null
    return this.bytes.toString('utf8', this.startOf(field), this.endOf(field))
  }

  readHex(from: number, bytes: number): string {
    return this.bytes.toString('hex', from, from + bytes)
  }

  readUuid(from: number): string {
    const hex = this.readHex(from, UUID_BYTES)
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  }

  /**
   * PostgreSQL stores microseconds since 2000. Far from that year, a double can't represent every
   * microsecond, but times are whole milliseconds, and rounding always recovers them.
   */
  #readTimeMs(offset: number): number {
    return Math.round(this.#readInt64(offset) / 1_000) + EPOCH_2000_MS
  }

  /** Reads two halves, for the same reason. */
  #isWholeMs(offset: number): boolean {
    const at = this.start + offset
    const high = this.#view.getInt32(at) % 1_000
    return (high * (2 ** 32 % 1_000) + this.#view.getUint32(at + 4)) % 1_000 === 0
  }

  #readInt64(offset: number): number {
    const at = this.start + offset
    return this.#view.getInt32(at) * 2 ** 32 + this.#view.getUint32(at + 4)
  }
}
