import { learnBeforeDelete } from '../../ledger/event-type/event-types.ts'
import { coverBeforeDelete } from '../../ledger/search/search-blocks.ts'
import { forgetRun } from '../../ledger/rollup/rollup.ts'
import { readArchivedSeq } from '../../ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { type ArchiveDeps, ArchiveRefusedError } from './archive-deps.ts'
import { deleteArchivedRun, readFirstHotSeq } from './archive-store.ts'
import { encodeRuns } from './encode-runs.ts'
import { storeSegment } from './store-segment.ts'

const ROWS_PER_REMOVAL = 5_000

/** How many events were archived, and whether the run stopped early because of another archiver. */
export type ArchivedRun = { moved: number; isOvertaken: boolean }

/**
 * Moves a chain's events up to `toSeq` into the archive, segment by segment.
 *
 *   read, encode ─▶ recompute every hash ─▶ note the draft ─▶ put ─▶ read back ─▶ catalog ─▶ remove
 *
 * While one segment is checked and put, the next is read and encoded, and the rows of the previous one are
 * removed. It can crash at any point and simply runs again. A file that the catalog doesn't name yet is a
 * draft, which the next run deletes. If the catalog names it, the next run removes the rows that are left.
 */
export async function archiveWorkspace(
  deps: ArchiveDeps,
  { workspaceId, toSeq }: { workspaceId: WorkspaceId; toSeq: number },
  signal: AbortSignal,
): Promise<ArchivedRun> {
  let archivedSeq = await readArchivedSeq(deps.database.db, workspaceId)
  let removing = startRemoving(deps, workspaceId, archivedSeq)
  const runs = encodeRuns(deps.database, { workspaceId, fromSeq: archivedSeq + 1, toSeq })
  let moved = 0
  try {
    for await (const segment of oneAhead(runs)) {
      if (signal.aborted) break
      if (!(await storeSegment(deps, segment))) return { moved, isOvertaken: true }
      archivedSeq = segment.summary.lastSeq
      moved += segment.summary.rows
      await removing
      removing = startRemoving(deps, workspaceId, archivedSeq)
    }
  } catch (error) {
    // Another archiver may just have archived the events that are missing from the table.
    const isMissing = error instanceof ArchiveRefusedError
    const lastSeq = isMissing ? await readArchivedSeq(deps.database.db, workspaceId) : 0
    if (lastSeq <= archivedSeq) throw error
    return { moved, isOvertaken: true }
  } finally {
    await removing
  }
  return { moved, isOvertaken: false }
}

/** Yields each value while the next one is being produced. */
async function* oneAhead<Value>(
  values: AsyncGenerator<Value, void, void>,
): AsyncGenerator<Value, void, void> {
  let next = values.next()
  try {
    for (;;) {
      const { value, done } = await next
      if (done === true) return
      next = values.next()
      // Prevents an unhandled rejection. The error surfaces at the next await, or no longer matters.
      next.catch(() => {})
      yield value
    }
  } finally {
    await values.return()
  }
}

/** Runs in parallel with the next segment. Errors surface when the caller awaits the promise. */
function startRemoving(...args: Parameters<typeof removeArchived>): Promise<void> {
  const removing = removeArchived(...args)
  removing.catch(() => {})
  return removing
}

/**
 * Removes the rows that the catalog covers, a few thousand at a time: first their types are learned, their tokens
 * are put into blocks and the roll-up stops counting them, then they are deleted. The batch size keeps each
 * statement well below the statement timeout.
 */
async function removeArchived(
  { database: { db } }: ArchiveDeps,
  workspaceId: WorkspaceId,
  archivedSeq: number,
): Promise<void> {
  const firstSeq = await readFirstHotSeq(db, workspaceId)
  if (firstSeq === null) return
  for (let fromSeq = firstSeq; fromSeq <= archivedSeq; fromSeq += ROWS_PER_REMOVAL) {
    const toSeq = Math.min(archivedSeq, fromSeq + ROWS_PER_REMOVAL - 1)
    await learnBeforeDelete(db, { workspaceId, toSeq })
    await coverBeforeDelete(db, { workspaceId, toSeq })
    await db.transaction().execute((trx) => forgetRun(trx, { workspaceId, toSeq }))
    await deleteArchivedRun(db, { workspaceId, fromSeq, toSeq })
  }
}
