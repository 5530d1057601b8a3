import { hash } from 'node:crypto'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import { isUtcMs } from '../../platform/time/utc-time.ts'
import { commitPartBytes, SALT_BYTES } from '../commitment.ts'
import { type ChainHead, PART_NAMES } from '../event.ts'
import { CoreWriter } from './core-bytes.ts'
import { hasFacets } from './facet-bytes.ts'
import { FIELD_INDEX, type HotRow, OFFSETS } from './hot-row.ts'
import { isBytesAt, isTextAt, putBytes, putUuid, readHexBytes } from './row-bytes.ts'

const HASH_BYTES = 32
const HASH_DIGITS = 2 * HASH_BYTES
const ID_BYTES = 16

const PARTS = PART_NAMES.map((name) => ({
  name,
  field: FIELD_INDEX[name],
  first: Buffer.from(`{"${name}":"`),
  next: Buffer.from(`","${name}":"`),
}))
const NO_PARTS = Buffer.from('{}')
const LAST_PART = Buffer.from('"}')

/**
 * Follows a chain from row to row. It does what `entryProblem` does, but on the bytes that the database sent. This
 * takes a third of the time, because it avoids creating strings.
 */
export class ChainCursor {
  readonly #core: CoreWriter
  readonly #id = Buffer.alloc(ID_BYTES)
  readonly #salt = Buffer.alloc(SALT_BYTES)
  /** The hash of the last row. Overwritten by the next one. */
  readonly hash = Buffer.alloc(HASH_BYTES)
  seq: number

  constructor({ seq, hash: lastHash, lastId }: ChainHead, workspaceId: WorkspaceId) {
    this.#core = new CoreWriter(workspaceId)
    this.seq = seq
    this.hash.write(lastHash, 'hex')
    // Otherwise it stays all zeros, and every id is greater than that.
    if (lastId !== null) this.#id.write(lastId.replaceAll('-', ''), 'hex')
  }

  get head(): ChainHead {
    const id = Buffer.alloc(36)
    putUuid(id, 0, this.#id, 0)
    return {
      seq: this.seq,
      hash: this.hash.toString('hex'),
      lastId: this.seq === 0 ? null : assertId(id.toString()),
    }
  }

  /**
   * Moves to a row if it is certainly the next one and unchanged. False doesn't mean that something is wrong:
   * `entryProblem` checks rows with erased parts or escaped values.
   */
  advance(row: HotRow): boolean {
    const { bytes, start } = row
    const isNext =
      row.seq === this.seq + 1 &&
      isBytesAt(bytes, start + OFFSETS.prevHash, this.hash) &&
      this.#id.compare(bytes, start + OFFSETS.id, start + OFFSETS.id + ID_BYTES) < 0
    const hasTimes = row.hasWholeMs && isUtcMs(row.timestampMs) && isUtcMs(row.receivedAtMs)
    if (!isNext || !hasTimes || !this.#hasCommitments(row) || !hasFacets(row)) return false
    const digest = hash('sha256', this.#core.write(row), 'binary')
    if (!isTextAt(bytes, start + OFFSETS.hash, digest)) return false
    this.seq = row.seq
    putBytes(this.hash, 0, bytes, start + OFFSETS.hash, start + OFFSETS.hash + HASH_BYTES)
    putBytes(this.#id, 0, bytes, start + OFFSETS.id, start + OFFSETS.id + ID_BYTES)
    return true
  }

  /** Whether `sealed` and `salts` have exactly the parts that are present, and each part matches. */
  #hasCommitments(row: HotRow): boolean {
    const { bytes } = row
    let sealedAt = row.startOf(FIELD_INDEX.sealed)
    let saltsAt = row.startOf(FIELD_INDEX.salts)
    let end = NO_PARTS
    for (const { name, field, first, next } of PARTS) {
      if (row.isNull(field)) continue
      const label = end === NO_PARTS ? first : next
      if (!isBytesAt(bytes, sealedAt, label) || !isBytesAt(bytes, saltsAt, label)) return false
      sealedAt += label.length
      saltsAt += label.length
      if (!readHexBytes(bytes, saltsAt, this.#salt)) return false
      const value = { bytes, from: row.startOf(field), to: row.endOf(field) }
      if (!isTextAt(bytes, sealedAt, commitPartBytes(name, value, this.#salt))) return false
      sealedAt += HASH_DIGITS
      saltsAt += 2 * SALT_BYTES
      end = LAST_PART
    }
    return (
      isBytesAt(bytes, sealedAt, end) &&
      isBytesAt(bytes, saltsAt, end) &&
      sealedAt + end.length === row.endOf(FIELD_INDEX.sealed) &&
      saltsAt + end.length === row.endOf(FIELD_INDEX.salts)
    )
  }
}
