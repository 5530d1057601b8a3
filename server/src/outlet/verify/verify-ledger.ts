import { OperatorError } from '../../errors.ts'
import type { ChainHead } from '../../ledger/event.ts'
import { readHead } from '../../ledger/event-store.ts'
import { readArchivedSeq } from '../../ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database, Queryable } from '../../platform/pg/database.ts'
import { findCompanyOf } from '../../tenancy/workspace/workspace-store.ts'
import { verifyArchive } from './verify-archive.ts'
import { findPlantedBefore } from './verify-entry.ts'
import { type TableSteps, verifyTable } from './verify-table.ts'

export type ChainVerdict =
  | { ok: true; workspaceId: WorkspaceId; events: number }
  | {
      ok: false
      workspaceId: WorkspaceId
      events: number
      seq: number
      id: string | null
      problem: string
    }

const TRIES_MAX = 5

/**
 * Verifies one chain from its first event to its head, first in the archive and then in the table.
 * Recomputes every hash, and compares the columns that are not hashed with those that are. Stops at the
 * first bad event, because nothing after it proves anything.
 */
export async function verifyChain(
  database: Pick<Database, 'pool' | 'db'>,
  archive: ObjectStore,
  workspaceId: WorkspaceId,
  options: TableSteps = {},
): Promise<ChainVerdict> {
  return await repeatWhileArchived(database.db, workspaceId, () =>
    verifyOnce(database, archive, workspaceId, options),
  )
}

/** Repeats a verification that failed while the archiver moved events. */
export async function repeatWhileArchived<T extends { ok: boolean }>(
  db: Queryable,
  workspaceId: WorkspaceId,
  verifyAgain: () => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const archivedSeq = await readArchivedSeq(db, workspaceId)
    const verdict = await verifyAgain()
    if (verdict.ok) return verdict
    // If the archiver made progress meanwhile, the missing events may just have been moved: retry.
    if ((await readArchivedSeq(db, workspaceId)) === archivedSeq) return verdict
    if (tries === TRIES_MAX) {
      throw new OperatorError(
        `Workspace ${workspaceId} could not be verified, because events were archived during each of ${TRIES_MAX} tries. Try again later.`,
      )
    }
  }
}

async function verifyOnce(
  database: Pick<Database, 'pool' | 'db'>,
  archive: ObjectStore,
  workspaceId: WorkspaceId,
  options: TableSteps,
): Promise<ChainVerdict> {
  const { hashes } = options
  const { db } = database
  hashes?.restart()
  // Read first, so that events added meanwhile come after it.
  const end = await readHead(db, workspaceId)
  const companyId = (await findCompanyOf(db, workspaceId)) ?? undefined
  const cold = await verifyArchive(db, archive, workspaceId, { ...options, companyId })
  const bad = (head: ChainHead, found: Found): ChainVerdict => {
    const { seq, id, problem } = found
    return { ok: false, workspaceId, events: head.seq, seq, id, problem }
  }
  if (!end) return bad(cold.head, { problem: 'the workspace has no head', seq: 0, id: null })
  if (!cold.ok) return bad(cold.head, cold)
  const planted = await findPlantedBefore(db, workspaceId, companyId)
  if (planted) return bad(cold.head, planted)
  const walk = { workspaceId, head: cold.head, end, toSeq: null }
  const verdict = await verifyTable(database, walk, options)
  if (!verdict.ok) return bad(verdict.head, verdict)
  return { ok: true, workspaceId, events: verdict.head.seq }
}

type Found = { seq: number; id: string | null; problem: string }
