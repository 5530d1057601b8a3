import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { zstdDecompressSync } from 'node:zlib'

import { type FileMetaData, parquetMetadata, type ParquetScan, parquetScan } from 'hyparquet'

import { rowSlice } from '../../platform/scheduling/row-cost.ts'
import { sha256InSlices } from '../../platform/scheduling/sliced-hash.ts'
import type { Verdict } from '../chain.ts'
import type { SealedEvent } from '../event.ts'
import { type SegmentSummary, summarizeSegment } from './segment.ts'
import { COLUMN_NAMES, type ColumnName } from './segment-columns.ts'
import {
  footerBytesOf,
  matchesDigest,
  MAGIC,
  parseFooter,
  type RowGroupRange,
  type SegmentFooter,
} from './segment-footer.ts'
import { restoreEvents, type RowGroupColumns } from './segment-rows.ts'

/** `fromSeq` ≤ seq ≤ `toSeq`, and `fromTimestampMs` ≤ timestamp < `toTimestampMs` as in a query. */
export type SegmentRange = {
  fromSeq?: number
  toSeq?: number
  fromTimestampMs?: number
  toTimestampMs?: number
}

/**
 * The source of a segment's bytes. `bytes` is the expected size; at the end of the file, `read` returns
 * fewer bytes than requested.
 */
export type SegmentSource = {
  bytes: number
  read: (start: number, end: number) => Promise<Buffer>
}

/** A source for a file that is completely in memory. */
export function sourceOf(file: Buffer): SegmentSource {
  return { bytes: file.length, read: async (start, end) => file.subarray(start, end) }
}

/** Thrown when a file that the catalog lists does not exist. */
export class SegmentMissingError extends Error {
  override name = 'SegmentMissingError'
}

/**
 * Thrown when the bytes are not those that were written. The message names the
 * events, but contains no payload.
 */
export class SegmentDamagedError extends Error {
  override name = 'SegmentDamagedError'
}

/**
 * Reads the events of a range in order, one row group at a time, and skips groups that can't contain any.
 * It yields a group only after recomputing all of its hashes up to the one that the next group, or the
 * chain, continues from. Throws only `SegmentDamagedError`.
 *
 * If others can write to where the bytes come from, check them against the catalog's SHA-256 first: the
 * Parquet reader trusts the counts in a page, and a forged count keeps it busy for minutes.
 */
export async function* readSegment(
  file: Buffer,
  range: SegmentRange = {},
): AsyncGenerator<SealedEvent[], void, undefined> {
  const segment = await openSegment(sourceOf(file), null)
  for (const group of segment.groups) {
    if (!groupMayContain(group, range)) continue
    const events = (await readGroup(segment, group)).filter((event) => isInRange(event, range))
    if (events.length > 0) yield events
  }
}

/**
 * Reads everything and compares it with what the writer or a catalog recorded about the segment. `onEvents` gets the
 * events in order.
 */
export async function verifySegment(
  file: Buffer,
  expected: SegmentSummary,
  onEvents?: (events: readonly SealedEvent[]) => void,
): Promise<Verdict> {
  try {
    const segment = await openSegment(sourceOf(file), null)
    let found: SegmentSummary | null = null
    for (const group of segment.groups) {
      const events = await readGroup(segment, group)
      onEvents?.(events)
      const summary = summarizeSegment(events)
      if (BOUND_NAMES.some((name) => summary[name] !== group[name])) {
        return bad(`the statistics of ${describeRange(group)} don't match their values`)
      }
      found = found === null ? summary : mergeSummaries(found, summary)
    }
    const wrong = SUMMARY_NAMES.find((name) => found?.[name] !== expected[name])
    return wrong ? bad(`${wrong} is ${found?.[wrong]}, expected ${expected[wrong]}`) : { ok: true }
  } catch (error) {
    if (error instanceof SegmentDamagedError) return bad(error.message)
    throw error
  }
}

const BOUND_NAMES = [
  'minTimestampMs',
  'maxTimestampMs',
  'minReceivedAtMs',
  'maxReceivedAtMs',
] as const
type Bounds = Record<(typeof BOUND_NAMES)[number], number>

const SUMMARY_NAMES = [
  'workspaceId',
  'firstSeq',
  'lastSeq',
  'firstPrevHash',
  'lastHash',
  'rows',
  ...BOUND_NAMES,
] as const satisfies (keyof SegmentSummary)[]

export type SegmentGroup = RowGroupRange & Bounds & { fileOffset: number; endHash: string }
export type OpenSegment = {
  source: SegmentSource
  footer: SegmentFooter
  groups: SegmentGroup[]
  metadata: FileMetaData
}

/** Most footers are smaller, so that the first read includes them. */
const FOOTER_BYTES_USUAL = 64 * 1_024
/** Far more than any real footer. Until its digest is verified, the length can't be trusted. */
const FOOTER_BYTES_MAX = 16 * 1_024 * 1_024

/**
 * Reads the footer, which makes it possible to read and verify each row group separately. `footerSha256`
 * comes from the catalog and guarantees that the groups are those that were archived, even if others can
 * write to the storage. Without it, the caller must have verified the SHA-256 of the whole file.
 */
export async function openSegment(
  source: SegmentSource,
  footerSha256: string | null,
): Promise<OpenSegment> {
  const bytes = await readFooter(source)
  if (!matchesDigest(bytes)) throw new SegmentDamagedError("the footer doesn't match its digest")
  if (footerSha256 !== null && hash('sha256', bytes, 'hex') !== footerSha256) {
    throw new SegmentDamagedError('the footer is not the one that was archived')
  }
  try {
    const metadata = parquetMetadata(bytes, { parsers: FOOTER_PARSERS, geoparquet: false })
    const footer = parseFooter(metadata.key_value_metadata ?? [])
    const groups = locateGroups(footer, metadata)
    const last = groups.at(-1)
    const footerOffset = last ? last.fileOffset + last.bytes : 0
    assert.equal(footerOffset + bytes.length, source.bytes, 'the file has these parts')
    return { source, footer, groups, metadata }
  } catch (cause) {
    throw new SegmentDamagedError("the footer can't be read", { cause })
  }
}

async function readFooter(source: SegmentSource): Promise<Buffer> {
  const offset = Math.max(0, source.bytes - FOOTER_BYTES_USUAL)
  // Read one byte beyond the expected end to detect a file that has grown.
  const end = await source.read(offset, source.bytes + 1)
  if (end.length !== source.bytes - offset) {
    const others = end.length > source.bytes - offset ? 'more' : 'fewer'
    throw new SegmentDamagedError(`it has ${others} than the expected ${source.bytes} bytes`)
  }
  const bytes = footerBytesOf(end)
  if (bytes === null || bytes > Math.min(source.bytes - MAGIC.length, FOOTER_BYTES_MAX)) {
    throw new SegmentDamagedError('the footer has the wrong length')
  }
  if (bytes <= end.length) return end.subarray(-bytes)
  return Buffer.concat([await source.read(source.bytes - bytes, offset), end])
}

const PAGE_BYTES_MAX = 64 * 1_024 * 1_024
/** The minimum that `node:zlib` accepts. */
const CHUNK_BYTES_MIN = 64

/**
 * Decompresses into a single chunk, since the size of the page is known. A page without values has size 0.
 */
function decompress(page: Uint8Array, pageBytes: number): Uint8Array {
  assert(pageBytes <= PAGE_BYTES_MAX, 'a page has a limit')
  const chunkSize = Math.max(pageBytes, CHUNK_BYTES_MIN)
  return zstdDecompressSync(page, { chunkSize, maxOutputLength: chunkSize })
}

/** Fatal, because we never write invalid UTF-8. The library's own decoder drops U+FEFF. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const COLUMN_PARSERS = {
  stringFromBytes: (bytes: Uint8Array) => utf8.decode(bytes),
  timestampFromMilliseconds: Number,
}
/** Text in the statistics may be cut off within a character. */
const FOOTER_PARSERS = { ...COLUMN_PARSERS, stringFromBytes: () => '' }

function locateGroups(
  footer: SegmentFooter,
  { row_groups: rowGroups }: FileMetaData,
): SegmentGroup[] {
  assert.equal(rowGroups.length, footer.rowGroups.length, 'each row group has a range')
  let fileOffset = MAGIC.length
  return footer.rowGroups.map((range, index) => {
    const bounds = boundsOf(rowGroups[index]?.columns ?? [])
    const endHash = footer.rowGroups[index + 1]?.prevHash ?? footer.lastHash
    const group = { ...range, ...bounds, fileOffset, endHash }
    fileOffset += range.bytes
    return group
  })
}

function boundsOf(chunks: FileMetaData['row_groups'][number]['columns']): Bounds {
  const boundOf = (name: ColumnName, end: 'min_value' | 'max_value'): number => {
    const value = chunks[COLUMN_NAMES.indexOf(name)]?.meta_data?.statistics?.[end]
    assert(typeof value === 'number', 'a column of times has statistics')
    return value
  }
  return {
    minTimestampMs: boundOf('timestamp', 'min_value'),
    maxTimestampMs: boundOf('timestamp', 'max_value'),
    minReceivedAtMs: boundOf('receivedAt', 'min_value'),
    maxReceivedAtMs: boundOf('receivedAt', 'max_value'),
  }
}

/** Returns all events of a group, after checking that they lead to the hash that the chain continues from. */
export async function readGroup(segment: OpenSegment, group: SegmentGroup): Promise<SealedEvent[]> {
  const { rows } = group
  const bytes = await readGroupBytes(segment, group)
  let events: SealedEvent[]
  try {
    const columns = await readColumns(await scanGroup(segment, group, bytes), rows)
    const head = { seq: group.firstSeq - 1, hash: group.prevHash, lastId: null }
    events = await restoreEvents(columns, { head, workspaceId: segment.footer.workspaceId, rows })
  } catch (cause) {
    throw new SegmentDamagedError(`${describeRange(group)} can't be read`, { cause })
  }
  if (events.at(-1)?.hash !== group.endHash) {
    throw new SegmentDamagedError(
      `${describeRange(group)} don't result in the hash ${group.endHash}`,
    )
  }
  return events
}

/** The first group is read together with the start of the file, which belongs to no group. */
async function readGroupBytes(
  { source, groups }: OpenSegment,
  group: SegmentGroup,
): Promise<Buffer> {
  const { fileOffset, bytes, digest } = group
  const start = group === groups[0] ? 0 : fileOffset
  const received = await source.read(start, fileOffset + bytes)
  const head = received.subarray(0, fileOffset - start)
  const groupBytes = received.subarray(fileOffset - start)
  const isIntact = (await sha256InSlices(groupBytes)) === digest
  if (!isIntact) throw new SegmentDamagedError(`the bytes of ${describeRange(group)} have changed`)
  if (head.length > 0 && head.toString('latin1') !== MAGIC) {
    throw new SegmentDamagedError("it doesn't start like a Parquet file")
  }
  return groupBytes
}

/** Creates a scan for this group only, because a scan keeps everything it has decoded. */
async function scanGroup(
  { source, groups, metadata }: OpenSegment,
  group: SegmentGroup,
  bytes: Buffer,
): Promise<ParquetScan> {
  const rowGroup = metadata.row_groups[groups.indexOf(group)]
  assert(rowGroup !== undefined, 'each row group has a range')
  return await parquetScan({
    file: {
      byteLength: source.bytes,
      slice: (start, end = source.bytes) => {
        const [from, to] = [start - group.fileOffset, end - group.fileOffset]
        assert(from >= 0 && to <= bytes.length, 'a column lies in its row group')
        return new Uint8Array(bytes.subarray(from, to)).buffer
      },
    },
    metadata: { ...metadata, row_groups: [rowGroup] },
    compressors: { ZSTD: decompress },
    parsers: COLUMN_PARSERS,
    useOffsetIndex: false,
  })
}

async function readColumns(scan: ParquetScan, rows: number): Promise<RowGroupColumns> {
  const slice = rowSlice()
  await slice.next()
  const read = async (column: ColumnName) => {
    if (slice.isOver) await slice.next()
    return await scan.readColumn({ column, rowStart: 0, rowEnd: rows })
  }
  return {
    seq: await read('seq'),
    id: await read('id'),
    timestamp: await read('timestamp'),
    receivedAt: await read('receivedAt'),
    companyId: await read('companyId'),
    workspaceId: await read('workspaceId'),
    projectId: await read('projectId'),
    category: await read('category'),
    action: await read('action'),
    actor: await read('actor'),
    resource: await read('resource'),
    metadata: await read('metadata'),
    traceId: await read('traceId'),
    actorSalt: await read('actorSalt'),
    resourceSalt: await read('resourceSalt'),
    metadataSalt: await read('metadataSalt'),
    sealedErased: await read('sealedErased'),
  }
}

function describeRange({ firstSeq, rows }: RowGroupRange): string {
  return `events ${firstSeq} to ${firstSeq + rows - 1}`
}

/** Whether a group can contain an event of the range. */
export function groupMayContain(group: SegmentGroup, range: SegmentRange): boolean {
  const { fromSeq, toSeq, fromTimestampMs, toTimestampMs } = { ...UNBOUNDED, ...range }
  return (
    group.firstSeq <= toSeq &&
    group.firstSeq + group.rows > fromSeq &&
    group.minTimestampMs < toTimestampMs &&
    group.maxTimestampMs >= fromTimestampMs
  )
}

const UNBOUNDED = {
  fromSeq: -Infinity,
  toSeq: Infinity,
  fromTimestampMs: -Infinity,
  toTimestampMs: Infinity,
}

function isInRange({ seq, timestampMs }: SealedEvent, range: SegmentRange): boolean {
  const { fromSeq, toSeq, fromTimestampMs, toTimestampMs } = { ...UNBOUNDED, ...range }
  return (
    seq >= fromSeq && seq <= toSeq && timestampMs >= fromTimestampMs && timestampMs < toTimestampMs
  )
}

function mergeSummaries(left: SegmentSummary, right: SegmentSummary): SegmentSummary {
  return {
    ...left,
    lastSeq: right.lastSeq,
    lastHash: right.lastHash,
    rows: left.rows + right.rows,
    minTimestampMs: Math.min(left.minTimestampMs, right.minTimestampMs),
    maxTimestampMs: Math.max(left.maxTimestampMs, right.maxTimestampMs),
    minReceivedAtMs: Math.min(left.minReceivedAtMs, right.minReceivedAtMs),
    maxReceivedAtMs: Math.max(left.maxReceivedAtMs, right.maxReceivedAtMs),
  }
}

function bad(problem: string): Verdict {
  return { ok: false, problem }
}
