import assert from 'node:assert/strict'
import { assertId, type WorkspaceId } from '../platform/id.ts'
import type { SealedEvent } from './event.ts'
import { FIELD, HotRow, PLACE } from './hot-row.ts'

/** Events of a chain in its order: cold ones as objects, hot ones as the database sent them. */
export type EventPage = readonly SealedEvent[] | HotPage

/** A page has no more rows than this, and no more bytes unless its first row alone has them. */
export type PageLimit = { rows: number; bytes: number }

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')
/** Flags, of which there are none for us, and the length of more that may come. */
const HEAD_BYTES = SIGNATURE.length + 8
/** Instead of the number of columns, behind the last row. */
const END = Buffer.from([0xff, 0xff])

/**
 * A page of the table, and up to where it was looked. It stays the bytes that `copy` gave, in
 * PostgreSQL's binary format: whoever wants bytes writes them as they are, and objects are made for
 * those who ask for them.
 */
export class HotPage {
  readonly bytes: Buffer
  readonly workspaceId: WorkspaceId
  readonly lookedSeq: number
  /** Where the rows are, for `HotRow.moveTo`, and behind them where the page ends. */
  readonly rowPlaces: readonly number[]
  readonly count: number
  #events: SealedEvent[] | null = null

  constructor(
    bytes: Buffer,
    { workspaceId, toSeq, limit }: { workspaceId: WorkspaceId; toSeq: number; limit: number },
  ) {
    this.bytes = bytes
    this.workspaceId = workspaceId
    const row = new HotRow(bytes)
    this.rowPlaces = findRows(row)
    this.count = this.rowPlaces.length - 1
    // The row is the last one. Behind a page that is not full there is nothing more.
    this.lookedSeq = this.count > 0 && this.count >= limit ? row.seq : toSeq
  }

  get events(): readonly SealedEvent[] {
    this.#events ??= this.#readEvents()
    return this.#events
  }

  #readEvents(): SealedEvent[] {
    const row = new HotRow(this.bytes)
    return this.rowPlaces.slice(0, this.count).map((place) => {
      row.moveTo(place)
      return readEvent(row, this.workspaceId)
    })
  }
}

export function eventsOf(page: EventPage): readonly SealedEvent[] {
  return page instanceof HotPage ? page.events : page
}

function findRows(row: HotRow): number[] {
  const { bytes } = row
  assert(bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE), 'a copy in the binary format')
  const places: number[] = []
  let place = HEAD_BYTES + bytes.readInt32BE(HEAD_BYTES - 4)
  const end = bytes.length - END.length
  while (place < end) {
    places.push(place)
    place = row.moveTo(place)
  }
  assert(place === end && bytes.subarray(end).equals(END), 'a copy has its end')
  return [...places, end]
}

function readEvent(row: HotRow, workspaceId: WorkspaceId): SealedEvent {
  const { start } = row
  const project = row.startOf(FIELD.projectId)
  const trace = row.startOf(FIELD.traceId)
  return {
    seq: row.seq,
    id: assertId(row.readUuid(start + PLACE.id)),
    timestampMs: row.timestampMs,
    receivedAtMs: row.receivedAtMs,
    companyId: assertId(row.readUuid(start + PLACE.companyId)),
    workspaceId,
    projectId: row.isNull(FIELD.projectId) ? null : assertId(row.readUuid(project)),
    category: row.readText(FIELD.category) ?? '',
    action: row.readText(FIELD.action) ?? '',
    actor: row.readText(FIELD.actor),
    resource: row.readText(FIELD.resource),
    metadata: row.readText(FIELD.metadata),
    traceId: row.isNull(FIELD.traceId) ? null : row.readHex(trace, 16),
    hash: row.readHex(start + PLACE.hash, 32),
    prevHash: row.readHex(start + PLACE.prevHash, 32),
    sealed: row.readText(FIELD.sealed) ?? '',
    salts: row.readText(FIELD.salts) ?? '',
  }
}
