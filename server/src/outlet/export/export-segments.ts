import { type EventFilter, filterText, NO_FILTER } from '../../ledger/filter/event-filter.ts'
import { mayContain } from '../../ledger/reader.ts'
import { listSegments, type Segment } from '../../ledger/segment/segment-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { type ExportEvidence, type ExportRange, isEmptyRange } from './job/export-job.ts'

const SEGMENTS_PER_READ = 500

/** The data an export reads. */
export type ExportScope = {
  ranges: readonly ExportRange[]
  filter: EventFilter
  evidence: ExportEvidence
  rowLimit: number
}

/**
 * The segments that an export will read, in order. If the only filter is the time, the catalog tells when the
 * row limit is reached, so it can stop early. It includes one extra row, which reveals a truncated export. An
 * export with stubs reads every event of its ranges.
 */
export async function* segmentsOf(
  db: Queryable,
  { ranges, filter: given, evidence, rowLimit }: ExportScope,
): AsyncGenerator<Segment, void, void> {
  const filter = evidence === 'COMPLETE' ? NO_FILTER : given
  let rows = 0
  for (const range of ranges) {
    if (isEmptyRange(range)) continue
    const { workspaceId, toSeq } = range
    let nextSeq = range.fromSeq
    for (;;) {
      const run = { workspaceId, fromSeq: nextSeq, toSeq, limit: SEGMENTS_PER_READ }
      const segments = await listSegments(db, run)
      for (const segment of segments.filter((candidate) => mayContain(candidate, filter))) {
        yield segment
        if (isWhollyIncluded(segment, filter)) rows += countOverlap(segment, range)
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
export function countOverlap(
  { firstSeq, lastSeq }: Segment,
  { fromSeq, toSeq }: ExportRange,
): number {
  return Math.max(0, Math.min(lastSeq, toSeq) - Math.max(firstSeq, fromSeq) + 1)
}
