import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { zstdDecompressSync } from 'node:zlib'

import {
  type FileMetaData,
  parquetMetadata,
  type ParquetRowRange,
  type ParquetScan,
  parquetScan,
} from 'hyparquet'

import type { Verdict } from './chain.ts'
import type { SealedEvent } from './event.ts'
import { type SegmentSummary, summarizeSegment } from './segment.ts'
import { COLUMN_NAMES, type ColumnName } from './segment-columns.ts'
import {
  checkedFooterOf,
  MAGIC,
  parseFooter,
  type RowGroupPlace,
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

/** The bytes are not those that were written. The sentence says which events, and has no payload. */
export class SegmentDamagedError extends Error {
  override name = 'SegmentDamagedError'
}

/**
 * The events of a range in their order, one row group at a time; groups that cannot hold any are
 * skipped. A group is handed out after all of its hashes were made again and led to the hash from
 * which the next group, or the chain, goes on. Throws `SegmentDamagedError`, and nothing else.
 *
 * Bytes from a place that others can write to are held against the catalogue's SHA-256 first: the
 * Parquet reader believes the counts in a page, and a forged one keeps it busy for minutes.
 */
export async function* readSegment(
  file: Buffer,
  range: SegmentRange = {},
): AsyncGenerator<SealedEvent[], void, undefined> {
  const segment = await openSegment(file)
  for (const group of segment.groups) {
    if (!mayHold(group, range)) continue
    const events = (await readGroup(segment, group)).filter((event) => isInRange(event, range))
    if (events.length > 0) yield events
  }
}

/** Reads everything, and holds it against what the writer or a catalogue knows of the segment. */
export async function verifySegment(file: Buffer, expected: SegmentSummary): Promise<Verdict> {
  try {
    const segment = await openSegment(file)
    let found: SegmentSummary | null = null
    for (const group of segment.groups) {
      const summary = summarizeSegment(await readGroup(segment, group))
      if (BOUND_NAMES.some((name) => summary[name] !== group[name])) {
        return bad(`the statistics of ${spanOf(group)} are not theirs`)
      }
      found = found === null ? summary : joinSummaries(found, summary)
    }
    const wrong = SUMMARY_NAMES.find((name) => found?.[name] !== expected[name])
    return wrong ? bad(`${wrong} is ${found?.[wrong]} and not ${expected[wrong]}`) : { ok: true }
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

type Group = RowGroupPlace & Bounds & { fileOffset: number; rowStart: number; endHash: string }
type OpenSegment = { file: Buffer; footer: SegmentFooter; groups: Group[]; scan: ParquetScan }

async function openSegment(file: Buffer): Promise<OpenSegment> {
  const footerBytes = checkedFooterOf(file)
  if (footerBytes === null) throw new SegmentDamagedError('the footer does not have its digest')
  try {
    const metadata = parquetMetadata(footerBytes, { parsers: FOOTER_PARSERS, geoparquet: false })
    const footer = parseFooter(metadata.key_value_metadata ?? [])
    const groups = placeGroups(footer, metadata)
    const { fileOffset, bytes } = groups.at(-1) ?? { fileOffset: 0, bytes: 0 }
    assert.equal(fileOffset + bytes + footerBytes.length, file.length, 'the file has these parts')
    assert.equal(file.toString('latin1', 0, MAGIC.length), MAGIC, 'the file is of Parquet')
    const scan = await parquetScan({
      file: {
        byteLength: file.length,
        slice: (start, end) => new Uint8Array(file.subarray(start, end)).buffer,
      },
      metadata,
      compressors: { ZSTD: decompress },
      parsers: COLUMN_PARSERS,
      useOffsetIndex: false,
    })
    return { file, footer, groups, scan }
  } catch (cause) {
    throw new SegmentDamagedError('the footer cannot be read', { cause })
  }
}

const PAGE_BYTES_MAX = 64 * 1_024 * 1_024
/** Of `node:zlib`. */
const CHUNK_BYTES_MIN = 64

/** The page's size is known, so that it is made in one piece. A page without values has none. */
function decompress(page: Uint8Array, pageBytes: number): Uint8Array {
  assert(pageBytes <= PAGE_BYTES_MAX, 'a page has a limit')
  const chunkSize = Math.max(pageBytes, CHUNK_BYTES_MIN)
  return zstdDecompressSync(page, { chunkSize, maxOutputLength: chunkSize })
}

/** Fatal: what is no UTF-8 was not written by us. The library's own decoder drops U+FEFF. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const COLUMN_PARSERS = {
  stringFromBytes: (bytes: Uint8Array) => utf8.decode(bytes),
  timestampFromMilliseconds: Number,
}
/** A text in the statistics may be cut within a character. */
const FOOTER_PARSERS = { ...COLUMN_PARSERS, stringFromBytes: () => '' }

function placeGroups(footer: SegmentFooter, { row_groups: rowGroups }: FileMetaData): Group[] {
  assert.equal(rowGroups.length, footer.rowGroups.length, 'each row group has its place')
  let fileOffset = MAGIC.length
  return footer.rowGroups.map((place, index) => {
    const bounds = boundsOf(rowGroups[index]?.columns ?? [])
    const endHash = footer.rowGroups[index + 1]?.prevHash ?? footer.lastHash
    const group = { ...place, ...bounds, fileOffset, endHash }
    fileOffset += place.bytes
    return { ...group, rowStart: place.firstSeq - footer.firstSeq }
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

async function readGroup(segment: OpenSegment, group: Group): Promise<SealedEvent[]> {
  const { file, footer, scan } = segment
  const { fileOffset, bytes, rows, rowStart } = group
  const isIntact =
    hash('sha256', file.subarray(fileOffset, fileOffset + bytes), 'hex') === group.digest
  if (!isIntact) throw new SegmentDamagedError(`the bytes of ${spanOf(group)} have changed`)
  let events: SealedEvent[]
  try {
    const columns = await readColumns(scan, { rowStart, rowEnd: rowStart + rows })
    const head = { seq: group.firstSeq - 1, hash: group.prevHash, lastId: null }
    events = restoreEvents(columns, { head, workspaceId: footer.workspaceId, rows })
  } catch (cause) {
    throw new SegmentDamagedError(`${spanOf(group)} cannot be read`, { cause })
  }
  if (events.at(-1)?.hash !== group.endHash) {
    throw new SegmentDamagedError(`${spanOf(group)} do not lead to the hash ${group.endHash}`)
  }
  return events
}

async function readColumns(scan: ParquetScan, rows: ParquetRowRange): Promise<RowGroupColumns> {
  const read = (column: ColumnName) => scan.readColumn({ column, ...rows })
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

function spanOf({ firstSeq, rows }: RowGroupPlace): string {
  return `the events ${firstSeq} to ${firstSeq + rows - 1}`
}

function mayHold(group: Group, range: SegmentRange): boolean {
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

function joinSummaries(left: SegmentSummary, right: SegmentSummary): SegmentSummary {
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
