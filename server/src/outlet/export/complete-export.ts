import { ApiError } from '../../errors.ts'
import { TIMESTAMP_AHEAD_MS_MAX } from '../../ledger/event.ts'
import type { EventFilter } from '../../ledger/filter/event-filter.ts'
import { findReceivedSeq } from '../../ledger/hot/hot-floor-store.ts'
import { isSegmentFault, storageTimeout } from '../../ledger/segment/archive-refusal.ts'
import { ColdCache } from '../../ledger/segment/cold-cache.ts'
import { findReceivedInSegment } from '../../ledger/segment/cold-reader.ts'
import { findSegmentReceived, type Segment } from '../../ledger/segment/segment-store.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import { withArchivePermit } from '../../platform/scheduling/slot-scope.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import type { ExportTimeouts } from './export-timeouts.ts'
import { type ExportEvidence, type ExportRange, isEmptyRange } from './job/export-job.ts'

/** The fields of a filter whose values are also in a stub. */
const STUB_FIELDS: ReadonlySet<string> = new Set<keyof EventFilter>([
  'fromMs',
  'toMs',
  'category',
  'action',
  'projectId',
  'traceId',
])

/**
 * What a job can prove. A verifier sees that a stub doesn't match only if the filters use nothing but the fields
 * of stubs. A filter by a field that this function doesn't know is not proven.
 */
export function evidenceOf(requested: ExportEvidence, filter: EventFilter): ExportEvidence {
  if (requested === 'NONE') return 'NONE'
  // `textIn` only says where to look for the text.
  const { anyOf, excluded, textIn: _textIn, ...fields } = filter
  const compared = [
    ...Object.entries(fields)
      .filter(([, value]) => value !== null)
      .map(([name]) => name),
    ...[...(anyOf ?? []), ...(excluded ?? [])].map(({ field }) => field),
  ]
  return compared.every((name) => STUB_FIELDS.has(name)) ? 'COMPLETE' : 'MEMBERSHIP'
}

/** How many rows and stubs a complete export of the ranges has. A chain has no gaps, so this is exact. */
export function linesOf(ranges: readonly ExportRange[]): number {
  return ranges.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0)
}

/** A truncated file would not be complete. */
export function refuseLines(lines: number, rowLimit: number): void {
  if (lines <= rowLimit) return
  const message = `A complete export also has a stub for each event that its filters skip. It would have ${lines} rows and stubs, and the limit is ${rowLimit}. Choose a later start, one workspace or another source, or export without evidence.`
  throw new ApiError('invalid_request', { message, details: [{ path: '/evidence', message }] })
}

/** The plan may allow less than when the first job was created. */
export function refuseRerunLines(lines: number, rowLimit: number): void {
  if (lines <= rowLimit) return
  throw new ApiError('plan_required', {
    message: `The export is complete only with all of its ${lines} rows and stubs, but the plan allows ${rowLimit} rows. Create an export with a later start, or without evidence.`,
  })
}

type StartDeps = {
  database: Database
  archive: ObjectStore
  timeouts: Pick<ExportTimeouts, 'checkMs'>
}

/**
 * Starts each range at its first event that was received at most 24 hours before `fromMs`. Earlier events can't
 * match, because no timestamp is further ahead of its receipt. A range without such an event becomes empty.
 */
export async function startAtReceipt(
  deps: StartDeps,
  ranges: readonly ExportRange[],
  fromMs: number | null,
): Promise<ExportRange[]> {
  if (fromMs === null) return [...ranges]
  const atMs = fromMs - TIMESTAMP_AHEAD_MS_MAX
  const started: ExportRange[] = []
  for (const range of ranges) {
    const endSeq = range.toSeq + 1
    const fromSeq = isEmptyRange(range) ? endSeq : await findStart(deps, range, atMs)
    started.push({ ...range, fromSeq: Math.min(fromSeq ?? endSeq, endSeq) })
  }
  return started
}

/** Reads the table first, because the archiver adds events to the catalog before it removes them. */
async function findStart(
  deps: StartDeps,
  range: ExportRange,
  atMs: number,
): Promise<number | null> {
  const { db } = deps.database
  const hotSeq = await findReceivedSeq(db, range, atMs)
  const segment = await findSegmentReceived(db, range, atMs)
  if (segment === null) return hotSeq
  const coldSeq = Math.max(range.fromSeq, await findStartIn(deps, segment, atMs))
  return hotSeq === null ? coldSeq : Math.min(coldSeq, hotSeq)
}

/**
 * If the file can't be read now, such as one in a cold storage class, the range starts at its first event: the
 * file then has a few more stubs.
 */
async function findStartIn(
  { archive, timeouts: { checkMs } }: StartDeps,
  segment: Segment,
  atMs: number,
): Promise<number> {
  if (segment.minReceivedAtMs >= atMs) return segment.firstSeq
  const giveUp = new AbortController()
  const reader = { archive, cache: new ColdCache(), signal: giveUp.signal }
  try {
    return await withArchivePermit(() =>
      withDeadline(findReceivedInSegment(reader, segment, atMs), {
        timeoutMs: checkMs,
        late: () => storageTimeout(checkMs),
      }),
    )
  } catch (error) {
    if (!(error instanceof StorageError) && !isSegmentFault(error)) throw error
    return segment.firstSeq
  } finally {
    giveUp.abort()
  }
}
