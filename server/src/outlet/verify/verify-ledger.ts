import { OperatorError } from '../../errors.ts'
import { type ChainHead, headAfter } from '../../ledger/event.ts'
import { listChainRun, readHead } from '../../ledger/event-store.ts'
import { readArchivedSeq } from '../../ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database, Queryable } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { SERVICE, type SliceOwner } from '../../platform/scheduling/thread-share.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { findCompanyOf } from '../../tenancy/workspace/workspace-store.ts'
import { confirmRows } from './confirm-rows.ts'
import { verifyArchive, type VerifySteps } from './verify-archive.ts'
import { entryProblem, findPlantedBefore, runAfter } from './verify-entry.ts'

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

const EVENTS_PER_READ = 2_000
const TRIES_MAX = 5

export type VerifyOptions = VerifySteps & {
  eventsPerRead?: number
  /** Whose CPU share the work counts against. The default is the service's own. */
  owner?: SliceOwner
}

/**
 * Verifies one chain from its first event to its head, first in the archive and then in the table.
 * Recomputes every hash, and compares the columns that are not hashed with those that are. Stops at the
 * first bad event, because nothing after it proves anything.
 */
export async function verifyChain(
  database: Pick<Database, 'pool' | 'db'>,
  archive: ObjectStore,
  workspaceId: WorkspaceId,
  options: VerifyOptions = {},
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
  options: VerifyOptions,
): Promise<ChainVerdict> {
  const { eventsPerRead = EVENTS_PER_READ, onProgress, pause, hashes, owner = SERVICE } = options
  const { db } = database
  hashes?.restart()
  // Read first, so that events added meanwhile come after it.
  const end = await readHead(db, workspaceId)
  const companyId = (await findCompanyOf(db, workspaceId)) ?? undefined
  const cold = await verifyArchive(db, archive, workspaceId, { ...options, companyId })
  let { head } = cold
  let behind: ChainHead | null = null
  const bad = (problem: string, seq: number, id: string | null): ChainVerdict => ({
    ok: false,
    workspaceId,
    events: head.seq,
    seq,
    id,
    problem,
  })
  if (!end) return bad('the workspace has no head', 0, null)
  if (!cold.ok) return bad(cold.problem, cold.seq, cold.id)
  const planted = await findPlantedBefore(db, workspaceId, companyId)
  if (planted) return bad(planted.problem, planted.seq, planted.id)
  const mismatch = headProblem(head, end)
  if (mismatch !== null) return bad(mismatch, head.seq, head.lastId)
  const slice = new TimeSlice(owner)
  const endStep = async (): Promise<void> => {
    onProgress?.(head.seq)
    await hashes?.flush()
  }
  for (;;) {
    // The last event, and those that were added meanwhile, are compared with the head below.
    const stretch = { workspaceId, head, toSeq: end.seq - 1, eventsPerRead, owner }
    for await (head of confirmRows(database, stretch, ({ hash }) => hashes?.add(hash))) {
      await endStep()
      await pause?.()
    }
    const next = { workspaceId, limit: eventsPerRead, ...runAfter(head) }
    const run = await withRowOwner(owner, () => listChainRun(db, next))
    for (const entry of run.entries) {
      const { event } = entry
      const broken = entryProblem(head, entry)
      if (broken !== null) return bad(broken, event.seq, event.id)
      head = headAfter(event)
      hashes?.add(Buffer.from(event.hash, 'hex'))
      if (head.seq > end.seq) behind ??= head
      const moved = headProblem(head, end)
      if (moved !== null) return bad(moved, event.seq, event.id)
      if (slice.isOver) await slice.next()
    }
    await endStep()
    if (!run.hasMore) break
    await pause?.()
  }
  if (head.seq < end.seq) {
    return bad(`the event is missing: the head counts ${end.seq} events`, head.seq + 1, null)
  }
  if (behind && ((await readHead(db, workspaceId))?.seq ?? 0) < head.seq) {
    return bad(
      `the event is beyond the head, which counts ${end.seq} events`,
      behind.seq,
      behind.lastId,
    )
  }
  return { ok: true, workspaceId, events: head.seq }
}

/** Why the stored head isn't that of the chain. Null if the chain continues. */
function headProblem(head: ChainHead, end: ChainHead): string | null {
  if (head.seq !== end.seq || (head.hash === end.hash && head.lastId === end.lastId)) return null
  return `the head has the hash ${end.hash} and the id ${end.lastId}`
}
