import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { constants, zstdCompressSync } from 'node:zlib'

import type { RowGroup } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'

import type { WorkspaceId } from '../../platform/id.ts'
import type { SealedEvent } from '../event.ts'
import { SEGMENT_SCHEMA, rowGroupColumns } from './segment-columns.ts'
import { footerEntries, type RowGroupRange, writeFooterDigest } from './segment-footer.ts'

export const SEGMENT_ROWS_MAX = 50_000
const ROW_GROUP_ROWS_MAX = 2_500
/**
 * The size of the parts in UTF-16 units. A reader has one row group in memory, so groups of large events
 * have fewer rows.
 */
const ROW_GROUP_UNITS_MAX = 8 * 1_024 * 1_024

/** A run of one workspace's chain: what a catalog knows about a segment without opening it. */
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

/** A segment, its summary, and the hashes of its events in order, 32 bytes each. */
export type EncodedSegment = { file: Buffer; summary: SegmentSummary; hashes: Buffer }

const HASH_BYTES = 32

/**
 * Writes a segment: a Parquet file with a run of a chain, readable by standard tools. It omits `hash`,
 * `prevHash` and `sealed`, because they don't compress and follow from the rest and the first `prevHash`.
 * The reader recomputes them, which proves that nothing has changed.
 *
 * Events are added one by one and kept until their row group is full: the events of a whole segment would
 * take 200 MB, which the garbage collector would keep copying.
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
  readonly #rowGroups: RowGroupRange[] = []
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

  /** Asserts that the event follows the previous one. */
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
    // Only a writer that flushes returns a promise; this one keeps everything in memory.
    void this.#parquet.write({ columnData: rowGroupColumns(group), rowGroupSize: group.length })
    copyBounds(this.#parquet.row_groups.at(-1))
    const bytes = this.#bytes.getBytes().subarray(start)
    const { seq: firstSeq, prevHash } = firstOf(group)
    this.#rowGroups.push({
      firstSeq,
      rows: group.length,
      // Copy the text: a substring keeps its whole parent in memory, which may be a page of events.
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

/**
 * Copies the bounds, because as views they would keep their columns in memory until the footer is written:
 * 100 MB per segment.
 */
function copyBounds(rowGroup: RowGroup | undefined): void {
  for (const { meta_data: chunk } of rowGroup?.columns ?? []) {
    const bounds = chunk?.statistics ?? {}
    for (const end of ['min_value', 'max_value'] as const) {
      const bound = bounds[end]
      if (bound instanceof Uint8Array) bounds[end] = Uint8Array.from(bound)
    }
  }
}

/** Encodes a run that is completely in memory. */
export async function encodeSegment(
  events: readonly SealedEvent[],
  options: { rowsPerGroupMax?: number } = {},
): Promise<Buffer> {
  const writer = new SegmentWriter(options)
  for (const event of events) writer.add(event)
  return writer.finish().file
}

/**
 * Most of the remaining data is hex digits of random bits. The lowest level packs them by frequency only:
 * 109 bytes per event, compared with 120 at level 3, which searches for repetitions, and 116 at level 9,
 * which takes 50% longer.
 */
const ZSTD_LEVEL = 1
/** More than the overhead of an incompressible page, so that the output is a single chunk. */
const CHUNK_BYTES_SPARE = 1_024

function compress(page: Uint8Array): Uint8Array {
  return zstdCompressSync(page, {
    chunkSize: page.length + CHUNK_BYTES_SPARE,
    pledgedSrcSize: page.length,
    params: { [constants.ZSTD_c_compressionLevel]: ZSTD_LEVEL },
  })
}

/** Asserts that the events are a run of one chain. The reader verifies their hashes. */
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

/** Updates the summary in place, because this is called for every event. */
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
