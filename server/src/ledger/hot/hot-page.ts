import assert from 'node:assert/strict'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import type { SealedEvent } from '../event.ts'
import { FIELD_INDEX, HotRow, OFFSETS } from './hot-row.ts'

/** Events of a chain in order: cold events as objects, hot events as the bytes that the database sent. */
export type LedgerPage = readonly SealedEvent[] | HotPage

/** The maximum number of rows and bytes of a page. The first row may exceed the bytes. */
export type PageLimit = {
  rows: number
  bytes: number
  /** Whether rows may be large, so that the database should add up their sizes instead of sending too many. */
  mayBeLarge?: boolean
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
/** The signature, then flags (which are never set here) and the length of the header extension. */
const HEADER_BYTES = SIGNATURE.length + 8
/** The trailer: -1 instead of the number of columns of another row. */
const TRAILER = Buffer.from([0xff, 0xff])

/**
 * A page of the table, and the last seq that was examined for it. It keeps the bytes of `copy`
 * in PostgreSQL's binary format, so that callers that need bytes can write them unchanged.
 * Objects are created only on demand.
 */
export class HotPage {
  readonly bytes: Buffer
  readonly workspaceId: WorkspaceId
  readonly scannedSeq: number
  /** The offset of each row, for `HotRow.moveTo`, followed by the offset where the rows end. */
  readonly rowOffsets: readonly number[]
  readonly count: number
  #events: SealedEvent[] | null = null

  constructor(
    bytes: Buffer,
    { workspaceId, toSeq, limit }: { workspaceId: WorkspaceId; toSeq: number; limit: number },
  ) {
    this.bytes = bytes
    this.workspaceId = workspaceId
    const row = new HotRow(bytes)
    this.rowOffsets = findRows(row)
    this.count = this.rowOffsets.length - 1
    // `row` is at the last row now. If the page is not full, the run has no more matches.
    this.scannedSeq = this.count > 0 && this.count >= limit ? row.seq : toSeq
  }

  get events(): readonly SealedEvent[] {
    this.#events ??= this.#readEvents()
    return this.#events
  }

  #readEvents(): SealedEvent[] {
    const row = new HotRow(this.bytes)
    return this.rowOffsets.slice(0, this.count).map((offset) => {
      row.moveTo(offset)
      return readEvent(row, this.workspaceId)
    })
  }
}

export function eventsOf(page: LedgerPage): readonly SealedEvent[] {
  return page instanceof HotPage ? page.events : page
}

function findRows(row: HotRow): number[] {
  const { start, end } = boundsOfRows(row.bytes)
  const offsets: number[] = []
  let offset = start
  while (offset < end) {
    offsets.push(offset)
    offset = row.moveTo(offset)
  }
  assert(offset === end, 'a copy has whole rows')
  return [...offsets, end]
}

/** The offsets where the rows of a copy start and end. */
export function boundsOfRows(bytes: Buffer): { start: number; end: number } {
  assert(bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE), 'a copy in the binary format')
  const end = bytes.length - TRAILER.length
  assert(bytes.subarray(end).equals(TRAILER), 'a copy ends with its trailer')
  return { start: HEADER_BYTES + bytes.readInt32BE(HEADER_BYTES - 4), end }
}

function readEvent(row: HotRow, workspaceId: WorkspaceId): SealedEvent {
  const { start } = row
  const project = row.startOf(FIELD_INDEX.projectId)
  const trace = row.startOf(FIELD_INDEX.traceId)
  return {
    seq: row.seq,
    id: assertId(row.readUuid(start + OFFSETS.id)),
    timestampMs: row.timestampMs,
    receivedAtMs: row.receivedAtMs,
    companyId: assertId(row.readUuid(start + OFFSETS.companyId)),
    workspaceId,
    projectId: row.isNull(FIELD_INDEX.projectId) ? null : assertId(row.readUuid(project)),
    category: row.readText(FIELD_INDEX.category) ?? '',
    action: row.readText(FIELD_INDEX.action) ?? '',
    actor: row.readText(FIELD_INDEX.actor),
    resource: row.readText(FIELD_INDEX.resource),
    metadata: row.readText(FIELD_INDEX.metadata),
    traceId: row.isNull(FIELD_INDEX.traceId) ? null : row.readHex(trace, 16),
    hash: row.readHex(start + OFFSETS.hash, 32),
    prevHash: row.readHex(start + OFFSETS.prevHash, 32),
    sealed: row.readText(FIELD_INDEX.sealed) ?? '',
    salts: row.readText(FIELD_INDEX.salts) ?? '',
  }
}
