import { canonicalString } from '../canonical.ts'
import { type Field, FIELD_INDEX, type HotRow } from './hot-row.ts'
import { putBytes, putHex, putUuid } from './row-bytes.ts'

/*
 * Writers for the fields of a row as canonical JSON, with the rules of `row-bytes.ts`.
 */

const NULL = Buffer.from('null')

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
/** Indexed by the byte to escape. */
const ESCAPES = Array.from({ length: BACKSLASH + 1 }, (_, byte) =>
  Buffer.from(canonicalString(String.fromCharCode(byte)).slice(1, -1)),
)

export function putProjectId(row: HotRow, out: Buffer, at: number): number {
  if (row.isNull(FIELD_INDEX.projectId)) return putBytes(out, at, NULL)
  out[at] = QUOTE
  const end = putUuid(out, at + 1, row.bytes, row.startOf(FIELD_INDEX.projectId))
  out[end] = QUOTE
  return end + 1
}

/** Writes 32 hex digits without dashes. */
export function putTraceId(row: HotRow, out: Buffer, at: number): number {
  const { traceId } = FIELD_INDEX
  if (row.isNull(traceId)) return putBytes(out, at, NULL)
  out[at] = QUOTE
  const end = putHex(out, at + 1, row.bytes, row.startOf(traceId), row.endOf(traceId))
  out[end] = QUOTE
  return end + 1
}

/** Copies the field unchanged, because it is stored as JSON. */
export function putJson(row: HotRow, field: Field, out: Buffer, at: number): number {
  if (row.isNull(field)) return putBytes(out, at, NULL)
  return putBytes(out, at, row.bytes, row.startOf(field), row.endOf(field))
}

/** Like `canonicalString`. Works byte by byte, because the text is UTF-8 and only ASCII is ever escaped. */
export function putString(row: HotRow, field: Field, out: Buffer, at: number): number {
  const { bytes } = row
  const to = row.endOf(field)
  out[at] = QUOTE
  let end = at + 1
  for (let index = row.startOf(field); index < to; index += 1) {
    const byte = bytes[index] ?? 0
    if (byte < SPACE || byte === QUOTE || byte === BACKSLASH) {
      end = putBytes(out, end, ESCAPES[byte] ?? NULL)
    } else {
      out[end] = byte
      end += 1
    }
  }
  out[end] = QUOTE
  return end + 1
}
