import assert from 'node:assert/strict'

/** Columns that are never null and have one size, first in every row: so many bytes from its start. */
export const PLACE = {
  id: 4,
  seq: 24,
  timestamp: 36,
  receivedAt: 48,
  companyId: 60,
  hash: 80,
  prevHash: 116,
  /** The first of the fields. */
  fields: 148,
} as const
const SIZES = [16, 8, 8, 8, 16, 32, 32] as const

/** The other columns, in their order: a field is a length, which is -1 for null, and as many bytes. */
export const FIELD = {
  projectId: 0,
  traceId: 1,
  category: 2,
  action: 3,
  actor: 4,
  resource: 5,
  metadata: 6,
  sealed: 7,
  salts: 8,
} as const
export type Field = (typeof FIELD)[keyof typeof FIELD]
const FIELDS = 9
const COLUMNS = SIZES.length + FIELDS

const UUID_BYTES = 16
const EPOCH_2000_MS = 946_684_800_000

/**
 * A row in the bytes of a page. One is moved from row to row, and says where things stand: an object
 * for each row, or for each of its values, would cost more than all else that is done with it.
 */
export class HotRow {
  readonly bytes: Buffer
  readonly #view: DataView
  readonly #starts = new Int32Array(FIELDS)
  readonly #ends = new Int32Array(FIELDS)
  /** Behind the number of its columns. */
  start = 0
  end = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  }

  /** To the row whose number of columns stands there; returns where the next row's does. */
  moveTo(at: number): number {
    const view = this.#view
    assert(view.getInt16(at) === COLUMNS, 'a row has the columns that were asked for')
    this.start = at + 2
    let place = this.start
    for (const size of SIZES) {
      assert(view.getInt32(place) === size, 'an id or a hash has one size')
      place += 4 + size
    }
    for (let field = 0; field < FIELDS; field += 1) {
      const bytes = view.getInt32(place)
      this.#starts[field] = bytes < 0 ? -1 : place + 4
      place += 4 + Math.max(0, bytes)
      this.#ends[field] = place
    }
    this.end = place
    return place
  }

  get seq(): number {
    return this.#readInt64(PLACE.seq)
  }

  get timestampMs(): number {
    return this.#readTimeMs(PLACE.timestamp)
  }

  get receivedAtMs(): number {
    return this.#readTimeMs(PLACE.receivedAt)
  }

  isNull(field: Field): boolean {
    return this.#starts[field] === -1
  }

  /** Where the field's bytes begin, unless it is null. */
  startOf(field: Field): number {
    return this.#starts[field] ?? 0
  }

  endOf(field: Field): number {
    return this.#ends[field] ?? 0
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
   * Microseconds since the year 2000. Far from then a double has no room for the last few of them;
   * times are whole milliseconds, to which it is always nearest.
   */
  #readTimeMs(place: number): number {
    return Math.round(this.#readInt64(place) / 1_000) + EPOCH_2000_MS
  }

  #readInt64(place: number): number {
    const at = this.start + place
    return this.#view.getInt32(at) * 2 ** 32 + this.#view.getUint32(at + 4)
  }
}
