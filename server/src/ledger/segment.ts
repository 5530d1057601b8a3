import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { constants, zstdCompressSync } from 'node:zlib'

import { ByteWriter, ParquetWriter } from 'hyparquet-writer'

import type { WorkspaceId } from '../platform/id.ts'
import type { SealedEvent } from './event.ts'
import { SEGMENT_SCHEMA, rowGroupColumns } from './segment-columns.ts'
import { footerEntries, type RowGroupPlace, writeFooterDigest } from './segment-footer.ts'

export const SEGMENT_ROWS_MAX = 50_000
const ROW_GROUP_ROWS_MAX = 2_500
/** Parts in UTF-16 units. A reader holds one row group; large events make it one of fewer rows. */
const ROW_GROUP_UNITS_MAX = 8 * 1_024 * 1_024

/** A run of one workspace's chain: what a catalogue knows of a segment without opening it. */
export type SegmentSummary = {
  workspaceId: WorkspaceId
  firstSeq: number
  lastSeq: number
  firstPrevHash: string
  lastHash: string
  minTimestampMs: number
  maxTimestampMs: number
  minReceivedAtMs: number
  maxReceivedAtMs: number
  rows: number
}

/**
 * A segment: a Parquet file with a run of a chain, for anyone's tools. `hash`, `prevHash` and
 * `sealed` are left out. They do not compress, and follow from the rest and the first `prevHash`;
 * the reader makes them again and so proves that nothing has changed. Between row groups others have
 * their turn: a whole segment takes most of a second.
 */
export async function encodeSegment(
  events: readonly SealedEvent[],
  { rowsPerGroupMax = ROW_GROUP_ROWS_MAX }: { rowsPerGroupMax?: number } = {},
): Promise<Buffer> {
  const summary = summarizeSegment(events)
  const writer = new ByteWriter()
  const parquet = new ParquetWriter({
    writer,
    schema: SEGMENT_SCHEMA,
    codec: 'ZSTD',
    compressors: { ZSTD: compress },
  })
  const rowGroups: RowGroupPlace[] = []
  for (const group of splitRows(events, rowsPerGroupMax)) {
    await new Promise(setImmediate)
    const start = writer.offset
    // A promise comes only from a writer that flushes; this one keeps all in memory.
    void parquet.write({ columnData: rowGroupColumns(group), rowGroupSize: group.length })
    const bytes = writer.getBytes().subarray(start)
    const { seq: firstSeq, prevHash } = firstOf(group)
    const digest = hash('sha256', bytes, 'hex')
    rowGroups.push({ firstSeq, rows: group.length, prevHash, bytes: bytes.length, digest })
  }
  parquet.kvMetadata = footerEntries({ ...summary, rowGroups })
  void parquet.finish()
  const file = Buffer.from(writer.getBuffer())
  writeFooterDigest(file)
  return file
}

/**
 * Most of what is left are hex digits of random bits. The lowest level packs them by their
 * frequency alone: 109 bytes an event, where level 3 looks for repetitions and gets 120, and level
 * 9 gets 116 for half as much time again.
 */
const ZSTD_LEVEL = 1
/** More than a page can grow by, so that it is made in one piece. */
const CHUNK_BYTES_SPARE = 1_024

function compress(page: Uint8Array): Uint8Array {
  return zstdCompressSync(page, {
    chunkSize: page.length + CHUNK_BYTES_SPARE,
    pledgedSrcSize: page.length,
    params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL },
  })
}

/** Asserts that the events are a run of one chain. That each has its hash is for the reader. */
export function summarizeSegment(events: readonly SealedEvent[]): SegmentSummary {
  const first = firstOf(events)
  const last = events.at(-1) ?? first
  assert(events.length <= SEGMENT_ROWS_MAX, 'a segment has a limit')
  const summary: SegmentSummary = {
    workspaceId: first.workspaceId,
    firstSeq: first.seq,
    lastSeq: last.seq,
    firstPrevHash: first.prevHash,
    lastHash: last.hash,
    minTimestampMs: first.timestampMs,
    maxTimestampMs: first.timestampMs,
    minReceivedAtMs: first.receivedAtMs,
    maxReceivedAtMs: first.receivedAtMs,
    rows: events.length,
  }
  let { seq, prevHash } = first
  for (const event of events) {
    assert(event.workspaceId === summary.workspaceId, 'a segment has one workspace')
    assert(event.seq === seq, 'seq has no gaps')
    assert(event.prevHash === prevHash, 'each event names the one before')
    seq += 1
    prevHash = event.hash
    widen(summary, event)
  }
  return summary
}

function widen(summary: SegmentSummary, { timestampMs, receivedAtMs }: SealedEvent): void {
  summary.minTimestampMs = Math.min(summary.minTimestampMs, timestampMs)
  summary.maxTimestampMs = Math.max(summary.maxTimestampMs, timestampMs)
  summary.minReceivedAtMs = Math.min(summary.minReceivedAtMs, receivedAtMs)
  summary.maxReceivedAtMs = Math.max(summary.maxReceivedAtMs, receivedAtMs)
}

/** Row groups are full when they have their rows, or when large events have filled them. */
function splitRows(events: readonly SealedEvent[], rowsMax: number): SealedEvent[][] {
  const groups: SealedEvent[][] = []
  let group: SealedEvent[] = []
  let units = 0
  for (const event of events) {
    const eventUnits = unitsOf(event)
    const isFull = group.length === rowsMax || units + eventUnits > ROW_GROUP_UNITS_MAX
    if (group.length === 0 || isFull) {
      groups.push((group = []))
      units = 0
    }
    group.push(event)
    units += eventUnits
  }
  return groups
}

function unitsOf({ actor, metadata, resource }: SealedEvent): number {
  return (actor?.length ?? 0) + (metadata?.length ?? 0) + (resource?.length ?? 0)
}

function firstOf(events: readonly SealedEvent[]): SealedEvent {
  const first = events[0]
  assert(first !== undefined, 'a run has events')
  return first
}
