import { findSeqAt } from '../../ledger/chain-search.ts'
import type { EventFilter } from '../../ledger/filter/event-filter.ts'
import { earliestReceiptMs, readHead } from '../../ledger/event-store.ts'
import { readArchivedSeq } from '../../ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { ExportRange, ExportSource } from './job/export-job.ts'

/** Workspaces are queried in parallel, but one export must not take the whole pool. */
const WORKSPACES_AT_ONCE_MAX = 4

type SnapshotOptions = { source: ExportSource; filter: EventFilter; hotSinceMs: number }

/**
 * Returns the runs of chains that an export reads, one per workspace, fixed at this moment: later events are not
 * included, and the runs stay the same if the archiver moves events meanwhile. A run can be empty
 * (`isEmptyRange`). The hot part starts at the first event that is within the plan's hot time and not archived,
 * so every event is either hot or archived, even if the clock was set back in between.
 */
export async function takeSnapshot(
  db: Queryable,
  workspaceIds: readonly WorkspaceId[],
  options: SnapshotOptions,
): Promise<ExportRange[]> {
  const ranges: ExportRange[] = []
  for (let start = 0; start < workspaceIds.length; start += WORKSPACES_AT_ONCE_MAX) {
    const some = workspaceIds.slice(start, start + WORKSPACES_AT_ONCE_MAX)
    ranges.push(...(await Promise.all(some.map((id) => rangeOf(db, id, options)))))
  }
  return ranges
}

async function rangeOf(
  db: Queryable,
  workspaceId: WorkspaceId,
  { source, filter, hotSinceMs }: SnapshotOptions,
): Promise<ExportRange> {
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const seqAt = (atMs: number) => findSeqAt(db, workspaceId, { atMs, headSeq })
  const hotSinceSeq = await seqAt(hotSinceMs)
  // Nothing below this seq can match. The table only has ids of events that are not archived yet.
  const earliestMs = earliestReceiptMs(filter, 0)
  const earliestSeq = earliestMs === 0 ? 1 : await seqAt(earliestMs)
  // Read last, so that the catalog includes everything the archiver removed in the meantime.
  const archivedSeq = await readArchivedSeq(db, workspaceId)
  const hotFromSeq = Math.max(archivedSeq + 1, hotSinceSeq)
  const fromSeq = Math.max(
    source === 'HOT' ? hotFromSeq : 1,
    earliestSeq > archivedSeq + 1 ? earliestSeq : 1,
  )
  const toSeq = source === 'ARCHIVED' ? hotFromSeq - 1 : headSeq
  return { workspaceId, fromSeq: Math.min(fromSeq, toSeq + 1), toSeq }
}
