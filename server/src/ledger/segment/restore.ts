import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { storageTimeout } from './archive-refusal.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { listSegments, type Segment } from './segment-store.ts'

const CHECKS_AT_ONCE = 8
/** Per request. Covers fifty million events. */
const CHECKED_SEGMENTS_MAX = 1_000

type Segments = Iterable<Segment> | AsyncIterable<Segment>

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
  segments: Segments,
  limits: CheckLimits,
): Promise<boolean> {
  return await someUnready(archive, segments, { ...limits, restores: true })
}

/** For work in the background, which no client waits for. */
const BACKGROUND_CHECK_MS = 10_000

/**
 * Requests the restore of a cold segment and of those after it in its chain, for work in the background that reads
 * the rest of the chain. A segment that is being restored is not requested again.
 */
export async function requestChainRestores(
  db: Queryable,
  archive: ObjectStore,
  { workspaceId, firstSeq }: Segment,
  /** The end of a period whose events, and the one after them, are read. The default is the whole chain. */
  untilMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const run = { workspaceId, fromSeq: firstSeq, toSeq: Number.MAX_SAFE_INTEGER }
  const segments = await listSegments(db, { ...run, limit: CHECKED_SEGMENTS_MAX })
  const needed = segments.filter((_, nth) => (segments[nth - 1]?.maxReceivedAtMs ?? 0) < untilMs)
  await requestRestores(archive, needed, { checkMs: BACKGROUND_CHECK_MS })
}

/** Like `requestRestores`, but requests nothing and stops at the first segment that can't be read yet. */
export async function hasUnready(
  archive: ObjectStore,
  segments: Segments,
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
  segments: Segments,
  { checkMs, signal, restores }: CheckLimits & { restores: boolean },
): Promise<boolean> {
  const giveUp = new AbortController()
  const stop = AbortSignal.any([giveUp.signal, ...(signal ? [signal] : [])])
  const check = (segment: Segment) =>
    withDeadline(isUnready(archive, segment, { restores, signal: stop }), {
      timeoutMs: checkMs,
      late: () => storageTimeout(checkMs),
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

async function* batchesOf(segments: Segments): AsyncGenerator<Segment[], void, void> {
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
