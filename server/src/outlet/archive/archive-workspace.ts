import { forgetRun } from '../../ledger/rollup.ts'
import { readArchivedSeq } from '../../ledger/segment-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { type ArchiveDeps, ArchiveRefusedError } from './archive-deps.ts'
import { deleteArchivedRun, readFirstHotSeq } from './archive-store.ts'
import { encodeRuns } from './encode-runs.ts'
import { keepSegment } from './keep-segment.ts'

const ROWS_PER_DELETE = 5_000

/** How many events were moved, and whether it ended early because another archiver was there. */
export type ArchivedRun = { moved: number; isOvertaken: boolean }

/**
 * Moves a chain's events up to `toSeq` into the archive, segment by segment.
 *
 *   read, encode ─▶ note the draft ─▶ put ─▶ read back, recompute every hash ─▶ catalogue ─▶ remove
 *
 * While one segment is read back, the next is read and encoded, and the rows of the last are removed.
 * It may die at any point and is simply run again. Until the catalogue names a run, the file is a
 * draft, which the next run deletes; from then on it is the truth, and what is still in the table of
 * it is removed.
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
      if (!(await keepSegment(deps, segment))) return { moved, isOvertaken: true }
      archivedSeq = segment.summary.lastSeq
      moved += segment.summary.rows
      await removing
      removing = startRemoving(deps, workspaceId, archivedSeq)
    }
  } catch (error) {
    // What is missing from the table may just have been archived by another.
    const isMissing = error instanceof ArchiveRefusedError
    const lastSeq = isMissing ? await readArchivedSeq(deps.database.db, workspaceId) : 0
    if (lastSeq <= archivedSeq) throw error
    return { moved, isOvertaken: true }
  } finally {
    await removing
  }
  return { moved, isOvertaken: false }
}

/** Hands out each value while the next one is being made. */
async function* oneAhead<Value>(
  values: AsyncGenerator<Value, void, void>,
): AsyncGenerator<Value, void, void> {
  let next = values.next()
  try {
    for (;;) {
      const { value, done } = await next
      if (done === true) return
      next = values.next()
      // Its failure is met when it is awaited, or nobody wants it any more.
      next.catch(() => {})
      yield value
    }
  } finally {
    await values.return()
  }
}

/** It goes on beside the next segment; its failure is met when it is awaited. */
function startRemoving(...what: Parameters<typeof removeArchived>): Promise<void> {
  const removing = removeArchived(...what)
  removing.catch(() => {})
  return removing
}

/**
 * What the catalogue names is no longer needed in the table. First it is no longer counted, nor shown by
 * the explorer, whose hot events begin above; then it is removed, in bounded statements.
 */
async function removeArchived(
  { database: { db } }: ArchiveDeps,
  workspaceId: WorkspaceId,
  archivedSeq: number,
): Promise<void> {
  const firstSeq = await readFirstHotSeq(db, workspaceId)
  if (firstSeq === null || firstSeq > archivedSeq) return
  await db.transaction().execute((trx) => forgetRun(trx, { workspaceId, toSeq: archivedSeq }))
  for (let seq = firstSeq; seq <= archivedSeq; seq += ROWS_PER_DELETE) {
    const toSeq = Math.min(archivedSeq, seq + ROWS_PER_DELETE - 1)
    await deleteArchivedRun(db, { workspaceId, fromSeq: seq, toSeq })
  }
}
