import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { constants, zstdCompressSync } from 'node:zlib'

import type { RowGroup } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'

import type { WorkspaceId } from '../platform/id.ts'
import type { SealedEvent } from './event.ts'
import { SEGMENT_SCHEMA, rowGroupColumns } from './segment-columns.ts'
import { footerEntries, type RowGroupPlace, writeFooterDigest } from './segment-footer.ts'

export const SEGMENT_ROWS_MAX = 50_000
const ROW_GROUP_ROWS_MAX = 2_500
/** Parts in UTF-16 units. A reader holds one row group; large events make it one of fewer rows. */
const ROW_GROUP_UNITS_MAX = 8 * 1_024 * 1_024

/** A run of one workspace's chain: what a catalog knows of a segment without opening it. */
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

/** A segment, what it holds, and the hash of each of its events, 32 bytes each and in their order. */
export type EncodedSegment = { file: Buffer; summary: SegmentSummary; hashes: Buffer }

const HASH_BYTES = 32

/**
 * A segment: a Parquet file with a run of a chain, for anyone's tools. `hash`, `prevHash` and
 * `sealed` are left out. They do not compress, and follow from the rest and the first `prevHash`;
 * the reader makes them again and so proves that nothing has changed.
 *
 * Events are taken one by one and held until their row group is full: a whole segment of them would
 * be 200 MB, which the garbage collector copies to and fro.
 */
export class SegmentWriter {
  readonly #rowsPerGroupMax: number
  readonly #bytes = new ByteWriter()
  readonly #parquet = new ParquetWriter({
    writer: this.#bytes,
    schema: SEGMENT_SCHEMA,
    codec: 'ZSTD',
    compressors: { ZSTD: compress },
  })
  readonly #rowGroups: RowGroupPlace[] = []
  readonly #hashes: Buffer[] = []
  #summary: SegmentSummary | null = null
  #group: SealedEvent[] = []
  #groupUnits = 0

  constructor({ rowsPerGroupMax = ROW_GROUP_ROWS_MAX }: { rowsPerGroupMax?: number } = {}) {
    this.#rowsPerGroupMax = rowsPerGroupMax
  }

  get rows(): number {
    return this.#summary?.rows ?? 0
  }

  /** Asserts that the event follows the one before. */
  add(event: SealedEvent): void {
    const units = unitsOf(event)
    const isFull =
      this.#group.length === this.#rowsPerGroupMax || this.#groupUnits + units > ROW_GROUP_UNITS_MAX
    if (this.#group.length > 0 && isFull) this.#writeGroup()
    if (this.#summary === null) this.#summary = summaryOf(event)
    else extendSummary(this.#summary, event)
    this.#group.push(event)
    this.#groupUnits += units
  }

  finish(): EncodedSegment {
    const summary = this.#summary
    assert(summary !== null, 'a run has events')
    this.#writeGroup()
    this.#parquet.kvMetadata = footerEntries({ ...summary, rowGroups: this.#rowGroups })
    void this.#parquet.finish()
    const file = Buffer.from(this.#bytes.getBuffer())
    writeFooterDigest(file)
    return { file, summary, hashes: Buffer.concat(this.#hashes) }
  }

  #writeGroup(): void {
    const group = this.#group
    const start = this.#bytes.offset
    // A promise comes only from a writer that flushes; this one keeps all in memory.
    void this.#parquet.write({ columnData: rowGroupColumns(group), rowGroupSize: group.length })
    copyBounds(this.#parquet.row_groups.at(-1))
    const bytes = this.#bytes.getBytes().subarray(start)
    const { seq: firstSeq, prevHash } = firstOf(group)
    this.#rowGroups.push({
      firstSeq,
      rows: group.length,
      // A copy: a part of a text keeps the whole of it, which may be a page of events.
      prevHash: Buffer.from(prevHash, 'latin1').toString('latin1'),
      bytes: bytes.length,
      digest: hash('sha256', bytes, 'hex'),
    })
    const hashes = Buffer.allocUnsafeSlow(group.length * HASH_BYTES)
    group.forEach((event, index) => hashes.write(event.hash, index * HASH_BYTES, 'hex'))
    this.#hashes.push(hashes)
    this.#group = []
    this.#groupUnits = 0
  }
}

/** Bounds are parts of columns, and would keep these until the footer is written: 100 MB a segment. */
function copyBounds(rowGroup: RowGroup | undefined): void {
  for (const { meta_data: chunk } of rowGroup?.columns ?? []) {
    const bounds = chunk?.statistics ?? {}
    for (const end of ['min_value', 'max_value'] as const) {
      const bound = bounds[end]
      if (bound instanceof Uint8Array) bounds[end] = Uint8Array.from(bound)
    }
  }
}

/** The file with a run that is at hand as a whole. */
export async function encodeSegment(
  events: readonly SealedEvent[],
  options: { rowsPerGroupMax?: number } = {},
): Promise<Buffer> {
  const writer = new SegmentWriter(options)
  for (const event of events) writer.add(event)
  return writer.finish().file
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
  const summary = summaryOf(firstOf(events))
  for (const event of events.slice(1)) extendSummary(summary, event)
  return summary
}

function summaryOf(event: SealedEvent): SegmentSummary {
  return {
    workspaceId: event.workspaceId,
    firstSeq: event.seq,
    lastSeq: event.seq,
    firstPrevHash: event.prevHash,
    lastHash: event.hash,
    minTimestampMs: event.timestampMs,
    maxTimestampMs: event.timestampMs,
    minReceivedAtMs: event.receivedAtMs,
    maxReceivedAtMs: event.receivedAtMs,
    rows: 1,
  }
}

/** In place: it is called for every event. */
function extendSummary(summary: SegmentSummary, event: SealedEvent): void {
  const { timestampMs, receivedAtMs } = event
  assert(summary.rows < SEGMENT_ROWS_MAX, 'a segment has a limit')
  assert(event.workspaceId === summary.workspaceId, 'a segment has one workspace')
  assert(event.seq === summary.lastSeq + 1, 'seq has no gaps')
  assert(event.prevHash === summary.lastHash, 'each event names the one before')
  summary.lastSeq = event.seq
  summary.lastHash = event.hash
  summary.rows += 1
  summary.minTimestampMs = Math.min(summary.minTimestampMs, timestampMs)
  summary.maxTimestampMs = Math.max(summary.maxTimestampMs, timestampMs)
  summary.minReceivedAtMs = Math.min(summary.minReceivedAtMs, receivedAtMs)
  summary.maxReceivedAtMs = Math.max(summary.maxReceivedAtMs, receivedAtMs)
}

function unitsOf({ actor, metadata, resource }: SealedEvent): number {
  return (actor?.length ?? 0) + (metadata?.length ?? 0) + (resource?.length ?? 0)
}

function firstOf(events: readonly SealedEvent[]): SealedEvent {
  const first = events[0]
  assert(first !== undefined, 'a run has events')
  return first
}
