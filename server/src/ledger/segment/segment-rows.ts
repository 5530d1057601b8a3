import assert from 'node:assert/strict'

import { assertId, type WorkspaceId } from '../../platform/id.ts'
import { rowSlice } from '../../platform/scheduling/row-cost.ts'
import { recomputeHash, sealEvent } from '../chain.ts'
import { parsePartTexts, partTextsJson, type Salts } from '../commitment.ts'
import { type ChainHead, headAfter, type PendingEvent, type SealedEvent } from '../event.ts'
import { type ColumnName, HASH_HEX_DIGITS } from './segment-columns.ts'

/** The values of one row group as the Parquet reader returns them. */
export type RowGroupColumns = Record<ColumnName, ArrayLike<unknown>>

/**
 * The events of a row group that follow `head`, with `sealed`, `hash` and `prevHash` recomputed from the
 * columns. Only the last hash shows whether they are the events that were written. Asserts valid column
 * values; the reader reports a failure as a damaged segment. Yields to the event loop.
 */
export async function restoreEvents(
  columns: RowGroupColumns,
  { head, workspaceId, rows }: { head: ChainHead; workspaceId: WorkspaceId; rows: number },
): Promise<SealedEvent[]> {
  const slice = rowSlice()
  await slice.next()
  const events: SealedEvent[] = []
  let last = head
  for (let row = 0; row < rows; row += 1) {
    assert.equal(columns.seq[row], BigInt(last.seq + 1), 'seq has no gaps')
    assert.equal(columns.workspaceId[row], workspaceId, 'a segment has one workspace')
    const event = restoreEvent(last, columns, row)
    events.push(event)
    last = headAfter(event)
    if (slice.isOver) await slice.next()
  }
  return events
}

function restoreEvent(head: ChainHead, columns: RowGroupColumns, row: number): SealedEvent {
  const projectId = optionalTextAt(columns.projectId, row)
  const event: PendingEvent = {
    companyId: assertId(textAt(columns.companyId, row)),
    workspaceId: assertId(textAt(columns.workspaceId, row)),
    projectId: projectId === null ? null : assertId(projectId),
    timestampMs: msAt(columns.timestamp, row),
    receivedAtMs: msAt(columns.receivedAt, row),
    category: textAt(columns.category, row),
    action: textAt(columns.action, row),
    traceId: optionalTextAt(columns.traceId, row),
    actor: optionalTextAt(columns.actor, row),
    metadata: optionalTextAt(columns.metadata, row),
    resource: optionalTextAt(columns.resource, row),
  }
  const salts: Salts = {
    actor: saltAt(columns.actorSalt, row, event.actor),
    metadata: saltAt(columns.metadataSalt, row, event.metadata),
    resource: saltAt(columns.resourceSalt, row, event.resource),
  }
  const sealed = sealEvent(head, event, { id: assertId(textAt(columns.id, row)), salts })
  const erased = optionalTextAt(columns.sealedErased, row)
  return erased === null ? sealed : withErased(sealed, erased)
}

/** Adds the commitments to erased parts, because the hash covers them too. */
function withErased(event: SealedEvent, erased: string): SealedEvent {
  const commitments = parsePartTexts(erased, HASH_HEX_DIGITS)
  const others = parsePartTexts(event.sealed, HASH_HEX_DIGITS)
  assert(commitments !== null && others !== null, 'commitments are a canonical map')
  const restored = { ...event, sealed: partTextsJson({ ...others, ...commitments }) }
  const recomputed = recomputeHash(restored)
  assert(recomputed.ok, 'an erased part is not there')
  return { ...restored, hash: recomputed.hash }
}

function textAt(column: ArrayLike<unknown>, row: number): string {
  const value = column[row]
  assert(typeof value === 'string', 'the column has a text for every event')
  return value
}

function optionalTextAt(column: ArrayLike<unknown>, row: number): string | null {
  return (column[row] ?? null) === null ? null : textAt(column, row)
}

function msAt(column: ArrayLike<unknown>, row: number): number {
  const value = column[row]
  assert(typeof value === 'number', 'the column has a time for every event')
  return value
}

const NO_SALT = Buffer.alloc(0)

function saltAt(column: ArrayLike<unknown>, row: number, part: string | null): Buffer {
  const salt = column[row] ?? null
  assert((salt === null) === (part === null), 'a part has a salt, and no other has')
  if (salt === null) return NO_SALT
  assert(salt instanceof Uint8Array, 'a salt is bytes')
  return Buffer.from(salt.buffer, salt.byteOffset, salt.byteLength)
}
