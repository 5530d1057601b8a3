import { FIELD_INDEX, type HotRow, OFFSETS } from '../../../ledger/hot/hot-row.ts'
import { putBytes, putHex, putNumber, putTime, putUuid } from '../../../ledger/hot/row-bytes.ts'
import { putJson, putProjectId, putString, putTraceId } from '../../../ledger/hot/row-fields.ts'
import type { WorkspaceId } from '../../../platform/id.ts'

/** Placeholders for fixed-size values, which overwrite them: one long copy is faster than many short ones. */
const ID = ' '.repeat(36)
const TIME = ' '.repeat(24)
const HASH = ' '.repeat(64)

const START = Buffer.from(`{"id":"${ID}","seq":`)
const ID_AT = '{"id":"'.length
const STUB_START = Buffer.from(`{"stub":true,"id":"${ID}","seq":`)
const STUB_ID_AT = '{"stub":true,"id":"'.length
const TIMESTAMP_AT = ',"timestamp":"'.length
const RECEIVED_AT = TIMESTAMP_AT + TIME.length + '","receivedAt":"'.length
const COMPANY_AT = RECEIVED_AT + TIME.length + '","companyId":"'.length
const CATEGORY = Buffer.from(',"category":')
const ACTION = Buffer.from(',"action":')
const ACTOR = Buffer.from(',"actor":')
const RESOURCE = Buffer.from(',"resource":')
const METADATA = Buffer.from(',"metadata":')
const TRACE_ID = Buffer.from(',"traceId":')
/** Both hashes, in the order of a row or of a stub, and what follows them. */
type HashFrame = { bytes: Buffer; hashAt: number; prevHashAt: number }
const ROW_HASHES: HashFrame = {
  bytes: Buffer.from(`,"hash":"${HASH}","prevHash":"${HASH}","sealed":`),
  hashAt: ',"hash":"'.length,
  prevHashAt: `,"hash":"${HASH}","prevHash":"`.length,
}
const STUB_HASHES: HashFrame = {
  bytes: Buffer.from(`,"prevHash":"${HASH}","hash":"${HASH}"}\n`),
  hashAt: `,"prevHash":"${HASH}","hash":"`.length,
  prevHashAt: ',"prevHash":"'.length,
}
const SALTS = Buffer.from(',"salts":')
const SEALED = Buffer.from(',"sealed":')
const END = Buffer.from('}\n')

/** Writes the same bytes as `jsonlRow`. */
export function writeJsonlRow(
  row: HotRow,
  workspaceId: WorkspaceId,
  out: Buffer,
  at: number,
): number {
  let end = putBytes(out, at, START)
  putUuid(out, at + ID_AT, row.bytes, row.start + OFFSETS.id)
  end = putCore(row, workspaceId, out, end)
  end = putJson(row, FIELD_INDEX.actor, out, putBytes(out, end, ACTOR))
  end = putJson(row, FIELD_INDEX.resource, out, putBytes(out, end, RESOURCE))
  end = putJson(row, FIELD_INDEX.metadata, out, putBytes(out, end, METADATA))
  end = putTraceId(row, out, putBytes(out, end, TRACE_ID))
  end = putHashes(row, out, end, ROW_HASHES)
  end = putJson(row, FIELD_INDEX.sealed, out, end)
  end = putJson(row, FIELD_INDEX.salts, out, putBytes(out, end, SALTS))
  return putBytes(out, end, END)
}

/** Writes the same bytes as `jsonlStub`. The row needs neither parts nor salts. */
export function writeJsonlStub(
  row: HotRow,
  workspaceId: WorkspaceId,
  out: Buffer,
  at: number,
): number {
  let end = putBytes(out, at, STUB_START)
  putUuid(out, at + STUB_ID_AT, row.bytes, row.start + OFFSETS.id)
  end = putCore(row, workspaceId, out, end)
  end = putTraceId(row, out, putBytes(out, end, TRACE_ID))
  end = putJson(row, FIELD_INDEX.sealed, out, putBytes(out, end, SEALED))
  return putHashes(row, out, end, STUB_HASHES)
}

/** The fields after the id that rows and stubs start with. */
function putCore(row: HotRow, workspaceId: WorkspaceId, out: Buffer, at: number): number {
  let end = putNumber(out, at, row.seq)
  end = putTimesAndTenant(row, workspaceId, out, end)
  end = putProjectId(row, out, end)
  end = putString(row, FIELD_INDEX.category, out, putBytes(out, end, CATEGORY))
  return putString(row, FIELD_INDEX.action, out, putBytes(out, end, ACTION))
}

function putTimesAndTenant(row: HotRow, workspaceId: WorkspaceId, out: Buffer, at: number): number {
  const end = putBytes(out, at, frameOf(workspaceId))
  putTime(out, at + TIMESTAMP_AT, row.timestampMs)
  putTime(out, at + RECEIVED_AT, row.receivedAtMs)
  putUuid(out, at + COMPANY_AT, row.bytes, row.start + OFFSETS.companyId)
  return end
}

/** Caches only the last workspace, because the rows of a chain are consecutive. */
let cachedFrame = { workspaceId: '', bytes: Buffer.alloc(0) }

function frameOf(workspaceId: WorkspaceId): Buffer {
  if (cachedFrame.workspaceId !== workspaceId) {
    const times = `,"timestamp":"${TIME}","receivedAt":"${TIME}"`
    const tenant = `,"companyId":"${ID}","workspaceId":"${workspaceId}","projectId":`
    cachedFrame = { workspaceId, bytes: Buffer.from(times + tenant) }
  }
  return cachedFrame.bytes
}

function putHashes(row: HotRow, out: Buffer, at: number, frame: HashFrame): number {
  const { bytes, start } = row
  const hash = start + OFFSETS.hash
  const prevHash = start + OFFSETS.prevHash
  const end = putBytes(out, at, frame.bytes)
  putHex(out, at + frame.hashAt, bytes, hash, hash + 32)
  putHex(out, at + frame.prevHashAt, bytes, prevHash, prevHash + 32)
  return end
}
