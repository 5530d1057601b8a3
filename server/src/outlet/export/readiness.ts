import { type EventFilter, filterText, NO_FILTER } from '../../ledger/event-filter.ts'
import { mayHold } from '../../ledger/reader.ts'
import { listSegments, type Segment } from '../../ledger/segment-store.ts'
import { untilAborted, withDeadline } from '../../platform/deadline.ts'
import type { ObjectStore } from '../../platform/object-store.ts'
import type { Queryable } from '../../platform/pg.ts'
import type { ExportRange } from './export-job.ts'

const SEGMENTS_PER_READ = 500
const CHECKS_AT_ONCE = 8
/** In one request of a caller: fifty million events. */
const CHECKED_SEGMENTS_MAX = 1_000
const CHECK_MS_MAX = 10_000

/** What an export reads. */
export type ExportReach = {
  ranges: readonly ExportRange[]
  filter: EventFilter
  rowLimit: number
}

/**
 * The segments that an export will read, in their order. Where nothing but time is filtered by, it
 * is known without opening them when they hold as many rows as it may have, and one more, by which
 * it knows that some were cut.
 */
export async function* segmentsOf(
  db: Queryable,
  { ranges, filter, rowLimit }: ExportReach,
): AsyncGenerator<Segment, void, void> {
  let rows = 0
  for (const range of ranges) {
    const { workspaceId, toSeq } = range
    let nextSeq = range.fromSeq
    for (;;) {
      const run = { workspaceId, fromSeq: nextSeq, toSeq, limit: SEGMENTS_PER_READ }
      const segments = await listSegments(db, run)
      for (const segment of segments.filter((candidate) => mayHold(candidate, filter))) {
        yield segment
        if (isWhollyMeant(segment, filter)) rows += overlap(segment, range)
        if (rows > rowLimit) return
      }
      const last = segments.at(-1)
      if (!last || segments.length < SEGMENTS_PER_READ) break
      nextSeq = last.lastSeq + 1
    }
  }
}

export function isWhollyMeant(segment: Segment, filter: EventFilter): boolean {
  const { fromMs, toMs } = filter
  const isInTime =
    (fromMs === null || segment.minTimestampMs >= fromMs) &&
    (toMs === null || segment.maxTimestampMs < toMs)
  return isInTime && isUnfiltered({ ...filter, fromMs: null, toMs: null })
}

export function isUnfiltered(filter: EventFilter): boolean {
  return filterText(filter) === filterText(NO_FILTER)
}

/** How many events of a segment lie in a run of its chain. */
export function overlap({ firstSeq, lastSeq }: Segment, { fromSeq, toSeq }: ExportRange): number {
  return Math.max(0, Math.min(lastSeq, toSeq) - Math.max(firstSeq, fromSeq) + 1)
}

/** Asks for each segment that lies in a cold class. Returns whether some are not ready to be read. */
export async function requestRestores(
  store: ObjectStore,
  segments: AsyncIterable<Segment>,
  signal: AbortSignal | null = null,
): Promise<boolean> {
  return await someUnready(store, segments, { restores: true, signal })
}

/** Whether one of them has to be restored. Asks for nothing, and stops at the first. */
export async function hasUnready(
  store: ObjectStore,
  segments: AsyncIterable<Segment>,
): Promise<boolean> {
  return await someUnready(store, segments, { restores: false, signal: null })
}

/**
 * Some at a time, within a number and a time. What is not looked at by then passes for ready: a
 * download that meets a cold segment asks for it, and for those behind it, is cut and can be opened
 * again.
 */
async function someUnready(
  store: ObjectStore,
  segments: AsyncIterable<Segment>,
  { restores, signal }: { restores: boolean; signal: AbortSignal | null },
): Promise<boolean> {
  const giveUp = new AbortController()
  const stop = AbortSignal.any([giveUp.signal, ...(signal ? [signal] : [])])
  const endsAtMs = performance.now() + CHECK_MS_MAX
  let isSome = false
  let checked = 0
  try {
    for await (const batch of batchesOf(segments)) {
      const check = (segment: Segment) => isUnready(store, segment, { restores, signal: stop })
      const checking = untilAborted(Promise.all(batch.map(check)), signal)
      const timeoutMs = Math.max(0, endsAtMs - performance.now())
      const found = await withDeadline(checking, { timeoutMs, late: () => new CheckLateError() })
      isSome ||= found.includes(true)
      checked += batch.length
      if (checked >= CHECKED_SEGMENTS_MAX || (isSome && !restores)) break
    }
  } catch (error) {
    if (!(error instanceof CheckLateError)) throw error
  } finally {
    giveUp.abort()
  }
  return isSome
}

class CheckLateError extends Error {}

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
  store: ObjectStore,
  { objectKey }: Segment,
  { restores, signal }: { restores: boolean; signal: AbortSignal },
): Promise<boolean> {
  const state = await store.stat(objectKey, signal)
  // One that is missing is reported by the download, which says which.
  if (state === null || state.readiness === 'ready') return false
  if (restores && state.readiness === 'cold') await store.restore(objectKey, signal)
  return true
}
