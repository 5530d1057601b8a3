import type { WorkspaceId } from '../../platform/id.ts'
import { FIELD_INDEX, type HotRow, OFFSETS } from './hot-row.ts'
import { putBytes, putHex, putNumber, putTime, putUuid } from './row-bytes.ts'
import { putJson, putProjectId, putString, putTraceId } from './row-fields.ts'

/** Placeholders, as in an export: one long copy is faster than many short ones. */
const ID = ' '.repeat(36)
const TIME = ' '.repeat(24)
const HASH = ' '.repeat(64)

const ACTION = Buffer.from('\0{"action":')
const CATEGORY = Buffer.from(',"category":')
const IDS = Buffer.from(`,"companyId":"${ID}","id":"${ID}","prevHash":"${HASH}","projectId":`)
const COMPANY_AT = ',"companyId":"'.length
const ID_AT = COMPANY_AT + ID.length + '","id":"'.length
const PREV_HASH_AT = ID_AT + ID.length + '","prevHash":"'.length
const RECEIVED = Buffer.from(`,"receivedAt":"${TIME}","sealed":`)
const RECEIVED_AT = ',"receivedAt":"'.length
const SEQ = Buffer.from(',"seq":')
const TIMESTAMP = Buffer.from(`,"timestamp":"${TIME}","traceId":`)
const TIMESTAMP_AT = ',"timestamp":"'.length

/** JSON escapes one byte with up to six. */
const ESCAPED_BYTES_MAX = 6
/** More than everything with a fixed size takes. */
const FIXED_BYTES_MAX = 1_024

/** Writes what the hash of a row covers: 0x00, and the same bytes as `coreText`. */
export class CoreWriter {
  readonly #workspace: Buffer
  #out = Buffer.alloc(2 * FIXED_BYTES_MAX)

  constructor(workspaceId: WorkspaceId) {
    this.#workspace = Buffer.from(`,"v":1,"workspaceId":"${workspaceId}"}`)
  }

  /** The next call overwrites the result. */
  write(row: HotRow): Buffer {
    const out = this.#reserve(row)
    const { bytes, start } = row
    let end = putString(row, FIELD_INDEX.action, out, putBytes(out, 0, ACTION))
    end = putString(row, FIELD_INDEX.category, out, putBytes(out, end, CATEGORY))
    putBytes(out, end, IDS)
    putUuid(out, end + COMPANY_AT, bytes, start + OFFSETS.companyId)
    putUuid(out, end + ID_AT, bytes, start + OFFSETS.id)
    const prevHash = start + OFFSETS.prevHash
    putHex(out, end + PREV_HASH_AT, bytes, prevHash, prevHash + 32)
    end = putProjectId(row, out, end + IDS.length)
    putBytes(out, end, RECEIVED)
    putTime(out, end + RECEIVED_AT, row.receivedAtMs)
    end = putJson(row, FIELD_INDEX.sealed, out, end + RECEIVED.length)
    end = putNumber(out, putBytes(out, end, SEQ), row.seq)
    putBytes(out, end, TIMESTAMP)
    putTime(out, end + TIMESTAMP_AT, row.timestampMs)
    end = putTraceId(row, out, end + TIMESTAMP.length)
    return out.subarray(0, putBytes(out, end, this.#workspace))
  }

  #reserve(row: HotRow): Buffer {
    const { action, category, sealed } = FIELD_INDEX
    const textBytes = row.lengthOf(action) + row.lengthOf(category)
    const bytes = FIXED_BYTES_MAX + ESCAPED_BYTES_MAX * textBytes + row.lengthOf(sealed)
    if (bytes > this.#out.length) this.#out = Buffer.alloc(2 * bytes)
    return this.#out
  }
}
