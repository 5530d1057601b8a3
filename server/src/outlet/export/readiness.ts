import { type EventFilter, filterText, NO_FILTER } from '../../ledger/event-filter.ts'
import { mayContain } from '../../ledger/reader.ts'
import { listSegments, type Segment } from '../../ledger/segment/segment-store.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { ExportRange } from './export-job.ts'

const SEGMENTS_PER_READ = 500
const CHECKS_AT_ONCE = 8
/** Per request. Covers fifty million events. */
const CHECKED_SEGMENTS_MAX = 1_000

/** The data an export reads. */
export type ExportScope = {
  ranges: readonly ExportRange[]
  filter: EventFilter
  rowLimit: number
}

/**
 * The segments that an export will read, in order. If the only filter is the time, the catalog tells when the
 * row limit is reached, so it can stop early. It includes one extra row, which reveals a truncated export.
 */
export async function* segmentsOf(
  db: Queryable,
  { ranges, filter, rowLimit }: ExportScope,
): AsyncGenerator<Segment, void, void> {
  let rows = 0
  for (const range of ranges) {
    const { workspaceId, toSeq } = range
    let nextSeq = range.fromSeq
    for (;;) {
      const run = { workspaceId, fromSeq: nextSeq, toSeq, limit: SEGMENTS_PER_READ }
      const segments = await listSegments(db, run)
      for (const segment of segments.filter((candidate) => mayContain(candidate, filter))) {
        yield segment
        if (isWhollyIncluded(segment, filter)) rows += overlap(segment, range)
        if (rows > rowLimit) return
      }
      const last = segments.at(-1)
      if (!last || segments.length < SEGMENTS_PER_READ) break
      nextSeq = last.lastSeq + 1
    }
  }
}

export function isWhollyIncluded(segment: Segment, filter: EventFilter): boolean {
  const { fromMs, toMs } = filter
  const isInTime =
    (fromMs === null || segment.minTimestampMs >= fromMs) &&
    (toMs === null || segment.maxTimestampMs < toMs)
  return isInTime && isUnfiltered({ ...filter, fromMs: null, toMs: null })
}

export function isUnfiltered(filter: EventFilter): boolean {
  return filterText(filter) === filterText(NO_FILTER)
}

/** How many events of a segment belong to a run of its chain. */
export function overlap({ firstSeq, lastSeq }: Segment, { fromSeq, toSeq }: ExportRange): number {
  return Math.max(0, Math.min(lastSeq, toSeq) - Math.max(firstSeq, fromSeq) + 1)
}

type CheckLimits = {
  /** Limits each segment's check, and the time in which further checks can start. */
  checkMs: number
  signal?: AbortSignal
}

/**
 * Requests the restore of each segment in a cold class. Returns whether some can't be read yet. Throws a
 * `StorageError` if the storage fails or doesn't answer in time.
 */
export async function requestRestores(
  archive: ObjectStore,
  segments: AsyncIterable<Segment>,
  limits: CheckLimits,
): Promise<boolean> {
  return await someUnready(archive, segments, { ...limits, restores: true })
}

/** Like `requestRestores`, but requests nothing and stops at the first segment that can't be read yet. */
export async function hasUnready(
  archive: ObjectStore,
  segments: AsyncIterable<Segment>,
  limits: CheckLimits,
): Promise<boolean> {
  return await someUnready(archive, segments, { ...limits, restores: false })
}

/**
 * Checks several segments at once, up to a maximum number and time. Segments beyond that count as ready: a
 * download that reaches a cold one requests it and those after it, is aborted, and can be opened again.
 */
async function someUnready(
  archive: ObjectStore,
  segments: AsyncIterable<Segment>,
  { checkMs, signal, restores }: CheckLimits & { restores: boolean },
): Promise<boolean> {
  const giveUp = new AbortController()
  const stop = AbortSignal.any([giveUp.signal, ...(signal ? [signal] : [])])
  const check = (segment: Segment) =>
    withDeadline(isUnready(archive, segment, { restores, signal: stop }), {
      timeoutMs: checkMs,
      late: () => new StorageError(`The archive storage did not respond within ${checkMs} ms.`),
    })
  const endsAtMs = performance.now() + checkMs
  let isSome = false
  let checked = 0
  try {
    for await (const batch of batchesOf(segments)) {
      const found = await Promise.all(batch.map(check))
      isSome ||= found.includes(true)
      checked += batch.length
      if (checked >= CHECKED_SEGMENTS_MAX || performance.now() >= endsAtMs) break
      if (isSome && !restores) break
    }
  } finally {
    giveUp.abort()
  }
  return isSome
}

async function* batchesOf(segments: AsyncIterable<Segment>): AsyncGenerator<Segment[], void, void> {
  let batch: Segment[] = []
  for await (const segment of segments) {
    batch.push(segment)
    if (batch.length < CHECKS_AT_ONCE) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

async function isUnready(
  archive: ObjectStore,
  { objectKey }: Segment,
  { restores, signal }: { restores: boolean; signal: AbortSignal },
): Promise<boolean> {
  const state = await archive.stat(objectKey, signal)
  // The download reports a missing segment and names it.
  if (state === null || state.readiness === 'ready') return false
  if (restores && state.readiness === 'cold') await archive.restore(objectKey, signal)
  return true
}
