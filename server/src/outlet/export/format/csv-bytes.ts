import { readFields } from '../../../ledger/filter/facets.ts'
import { type Field, FIELD_INDEX, type HotRow, OFFSETS } from '../../../ledger/hot/hot-row.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import { BLANKS, csvCell, FORMULA_SIGNS } from './format-csv.ts'
import { putBytes, putHex, putNumber, putTime, putUuid } from '../../../ledger/hot/row-bytes.ts'

const TAB = 0x09
const COMMA = 0x2c
const SEMICOLON = 0x3b
const QUOTE = 0x22
const APOSTROPHE = 0x27
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const LINE_END = Buffer.from('\r\n')

const ACTOR_NAMES = [Buffer.from('id'), Buffer.from('email'), Buffer.from('role')]
const RESOURCE_NAMES = [Buffer.from('type'), Buffer.from('id')]

/** Lookup tables by byte, for the rules of `csvCell`. */
const IS_RISKY_START = bytesOf("\t\r\n'")
const PLAIN = 0
const GUARDED = 1
const QUOTED = 2
const CLASS = Uint8Array.from({ length: 256 }, (_, byte) => {
  if ('",\r\n'.includes(String.fromCharCode(byte))) return QUOTED
  return byte === SEMICOLON || byte === TAB ? GUARDED : PLAIN
})
/** The UTF-8 bytes of each blank and each sign, indexed by the first byte. */
const BLANKS_BY_BYTE = byFirstByte(BLANKS)
const SIGNS_BY_BYTE = byFirstByte(FORMULA_SIGNS)

function bytesOf(characters: string): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    characters.includes(String.fromCharCode(byte)) ? 1 : 0,
  )
}

type ByFirstByte = readonly (readonly Buffer[] | null)[]

function byFirstByte(characters: readonly string[]): ByFirstByte {
  const encoded = characters.map((character) => Buffer.from(character))
  return Array.from({ length: 256 }, (_, byte) => {
    const some = encoded.filter(([first]) => first === byte)
    return some.length > 0 ? some : null
  })
}

/** Writes the same bytes as `csvRow`. */
export function writeCsvRow(
  row: HotRow,
  workspaceId: WorkspaceId,
  out: Buffer,
  at: number,
): number {
  let end = putIdsAndTimes(row, workspaceId, out, at)
  end = putCell(
    row.bytes,
    row.startOf(FIELD_INDEX.category),
    row.endOf(FIELD_INDEX.category),
    out,
    end,
  )
  end = putComma(out, end)
  end = putCell(row.bytes, row.startOf(FIELD_INDEX.action), row.endOf(FIELD_INDEX.action), out, end)
  end = putFields(row, FIELD_INDEX.actor, ACTOR_NAMES, out, end)
  end = putFields(row, FIELD_INDEX.resource, RESOURCE_NAMES, out, end)
  end = putComma(out, end)
  if (!row.isNull(FIELD_INDEX.metadata)) {
    end = putCell(
      row.bytes,
      row.startOf(FIELD_INDEX.metadata),
      row.endOf(FIELD_INDEX.metadata),
      out,
      end,
    )
  }
  end = putTraceAndHashes(row, out, putComma(out, end))
  return putBytes(out, end, LINE_END)
}

function putComma(out: Buffer, at: number): number {
  out[at] = COMMA
  return at + 1
}

function putIdsAndTimes(row: HotRow, workspaceId: WorkspaceId, out: Buffer, at: number): number {
  const { bytes, start } = row
  let end = putComma(out, putUuid(out, at, bytes, start + OFFSETS.id))
  end = putComma(out, putNumber(out, end, row.seq))
  end = putComma(out, putTime(out, end, row.timestampMs))
  end = putComma(out, putTime(out, end, row.receivedAtMs))
  end = putComma(out, putUuid(out, end, bytes, start + OFFSETS.companyId))
  end = putBytes(out, end, tenantOf(workspaceId))
  if (!row.isNull(FIELD_INDEX.projectId)) {
    end = putUuid(out, end, bytes, row.startOf(FIELD_INDEX.projectId))
  }
  return putComma(out, end)
}

/** Caches only the last workspace, because the rows of a chain are consecutive. */
let cachedTenant = { workspaceId: '', bytes: LINE_END }

function tenantOf(workspaceId: WorkspaceId): Buffer {
  if (cachedTenant.workspaceId !== workspaceId) {
    cachedTenant = { workspaceId, bytes: Buffer.from(`${workspaceId},`) }
  }
  return cachedTenant.bytes
}

function putTraceAndHashes(row: HotRow, out: Buffer, at: number): number {
  const { bytes, start } = row
  const { traceId } = FIELD_INDEX
  let end = at
  if (!row.isNull(traceId)) {
    end = putHex(out, end, bytes, row.startOf(traceId), row.endOf(traceId))
  }
  end = putComma(out, end)
  end = putHex(out, end, bytes, start + OFFSETS.hash, start + OFFSETS.hash + 32)
  end = putComma(out, end)
  return putHex(out, end, bytes, start + OFFSETS.prevHash, start + OFFSETS.prevHash + 32)
}

/** Writes free text, like `csvCell`. */
function putCell(bytes: Buffer, from: number, to: number, out: Buffer, at: number): number {
  if (from === to) return at
  const first = bytes[from] ?? 0
  const cellClass = classOf(bytes, from, to)
  const mayStartFormula = SIGNS_BY_BYTE[first] !== null || BLANKS_BY_BYTE[first] !== null
  const isRiskyStart = IS_RISKY_START[first] === 1
  if (cellClass === PLAIN && !mayStartFormula && !isRiskyStart) {
    return putBytes(out, at, bytes, from, to)
  }
  let end = at
  if (cellClass === QUOTED) out[end++] = QUOTE
  if (isRiskyStart) out[end++] = APOSTROPHE
  end = putGuarded(bytes, from, to, out, end)
  if (cellClass === QUOTED) out[end++] = QUOTE
  return end
}

function classOf(bytes: Buffer, from: number, to: number): number {
  let found = PLAIN
  for (let index = from; index < to; index += 1) {
    const byteClass = CLASS[bytes[index] ?? 0] ?? PLAIN
    if (byteClass === QUOTED) return QUOTED
    if (byteClass === GUARDED) found = GUARDED
  }
  return found
}

/** Doubles quotes and inserts an apostrophe before each sign that could start a formula. */
function putGuarded(bytes: Buffer, from: number, to: number, out: Buffer, at: number): number {
  let index = from
  let end = at
  while (index < to) {
    // A cell could start here: at the start of the text or after a separator.
    const sign = skipBlanks(bytes, index, to)
    while (index < sign) out[end++] = bytes[index++] ?? 0
    if (matchAt(SIGNS_BY_BYTE, bytes, index, to) > 0) out[end++] = APOSTROPHE
    while (index < to) {
      const byte = bytes[index++] ?? 0
      if (byte === QUOTE) out[end++] = QUOTE
      out[end++] = byte
      if (byte === SEMICOLON || byte === TAB) break
    }
  }
  return end
}

function skipBlanks(bytes: Buffer, from: number, to: number): number {
  let at = from
  for (;;) {
    const length = matchAt(BLANKS_BY_BYTE, bytes, at, to)
    if (length === 0) return at
    at += length
  }
}

/** The byte length of the character at `at` if it is one of these, else 0. */
function matchAt(characters: ByFirstByte, bytes: Buffer, at: number, to: number): number {
  const candidates = at < to ? characters[bytes[at] ?? 0] : null
  if (!candidates) return 0
  for (const candidate of candidates) {
    let same = 1
    while (same < candidate.length && candidate[same] === bytes[at + same]) same += 1
    if (same === candidate.length && at + same <= to) return same
  }
  return 0
}

/** Writes a comma and a cell for each name, from a field that is a JSON object with string values. */
function putFields(
  row: HotRow,
  field: Field,
  names: readonly Buffer[],
  out: Buffer,
  at: number,
): number {
  const offsets = row.isNull(field) ? ABSENT : findFields(row, field, names)
  if (offsets === null) return putParsedFields(row, field, names, out, at)
  let end = at
  for (let nth = 0; nth < names.length; nth += 1) {
    end = putComma(out, end)
    end = putCell(row.bytes, offsets[2 * nth] ?? 0, offsets[2 * nth + 1] ?? 0, out, end)
  }
  return end
}

const ABSENT: readonly number[] = []

/**
 * Finds where the value of each name starts and ends. Returns null if the object isn't simple, as most are:
 * if it contains an escape, or a value that isn't a string.
 */
function findFields(row: HotRow, field: Field, names: readonly Buffer[]): number[] | null {
  const { bytes } = row
  const end = row.endOf(field) - 1
  const offsets: number[] = [0, 0, 0, 0, 0, 0]
  let at = row.startOf(field)
  if (bytes[at] !== OPEN_BRACE || bytes[end] !== CLOSE_BRACE) return null
  if (at + 1 === end) return offsets
  while (at < end) {
    const key = at + 2
    const keyEnd = findQuote(bytes, key, end)
    const value = keyEnd + 3
    const valueEnd = findQuote(bytes, value, end)
    const isPlain =
      bytes[key - 1] === QUOTE && bytes[keyEnd + 1] === COLON && bytes[value - 1] === QUOTE
    if (keyEnd === end || valueEnd === end || !isPlain) return null
    const nth = findName(names, bytes, key, keyEnd)
    if (nth !== -1) {
      offsets[2 * nth] = value
      offsets[2 * nth + 1] = valueEnd
    }
    at = valueEnd + 1
    if (at < end && bytes[at] !== COMMA) return null
  }
  return offsets
}

/** Returns `end` if there is no quote, or if a backslash comes first. */
function findQuote(bytes: Buffer, from: number, end: number): number {
  for (let index = from; index < end; index += 1) {
    const byte = bytes[index]
    if (byte === QUOTE) return index
    if (byte === BACKSLASH) return end
  }
  return end
}

function findName(names: readonly Buffer[], bytes: Buffer, from: number, to: number): number {
  for (let nth = 0; nth < names.length; nth += 1) {
    const name = names[nth] ?? LINE_END
    let same = name.length === to - from ? 0 : -1
    while (same >= 0 && same < name.length) same = name[same] === bytes[from + same] ? same + 1 : -1
    if (same === name.length) return nth
  }
  return -1
}

function putParsedFields(
  row: HotRow,
  field: Field,
  names: readonly Buffer[],
  out: Buffer,
  at: number,
): number {
  const fields = readFields(row.readText(field))
  const cells = names.map((name) => `,${csvCell(fields[name.toString()])}`)
  return at + out.write(cells.join(''), at)
}
