import { OperatorError } from '../../errors.ts'
import { type ChainHead, headAfter } from '../../ledger/event.ts'
import { listChainRun, readHead } from '../../ledger/event-store.ts'
import { readArchivedSeq } from '../../ledger/segment/segment-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { SERVICE, type SliceOwner } from '../../platform/scheduling/thread-share.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { verifyArchive, type VerifySteps } from './verify-archive.ts'
import { entryProblem, findPlanted } from './verify-entry.ts'

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
  db: Queryable,
  archive: ObjectStore,
  workspaceId: WorkspaceId,
  options: VerifyOptions = {},
): Promise<ChainVerdict> {
  return await repeatWhileArchived(db, workspaceId, () =>
    verifyOnce(db, archive, workspaceId, options),
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
  db: Queryable,
  archive: ObjectStore,
  workspaceId: WorkspaceId,
  options: VerifyOptions,
): Promise<ChainVerdict> {
  const { eventsPerRead = EVENTS_PER_READ, onProgress, pause, hashes, owner = SERVICE } = options
  hashes?.restart()
  // Read first, so that events added meanwhile come after it.
  const end = await readHead(db, workspaceId)
  const cold = await verifyArchive(db, archive, workspaceId, options)
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
  const planted = await findPlanted(db, workspaceId)
  if (planted && planted.seq < 1) return bad(planted.problem, planted.seq, planted.id)
  if (differs(head, end)) {
    return bad(`the head has the hash ${end.hash} and the id ${end.lastId}`, head.seq, head.lastId)
  }
  const slice = new TimeSlice(owner)
  for (;;) {
    const next = { workspaceId, limit: eventsPerRead, ...runAfter(head) }
    const run = await withRowOwner(owner, () => listChainRun(db, next))
    for (const entry of run.entries) {
      const { event } = entry
      const problem = entryProblem(head, entry)
      if (problem !== null) return bad(problem, event.seq, event.id)
      head = headAfter(event)
      hashes?.add(event.hash)
      if (head.seq > end.seq) behind ??= head
      if (differs(head, end)) {
        return bad(
          `the head has the hash ${end.hash} and the id ${end.lastId}`,
          event.seq,
          event.id,
        )
      }
      if (slice.isOver) await slice.next()
    }
    onProgress?.(head.seq)
    await hashes?.flush()
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

/**
 * Each run but the first starts at the seq of the last checked event and skips only that event, so it finds an
 * event inserted with the same seq. Archived events that are still in the table were checked with the archive.
 */
export function runAfter({ seq, lastId }: ChainHead): {
  afterSeq: number
  seen: { seq: number; id: string } | null
} {
  if (lastId === null) return { afterSeq: 0, seen: null }
  return { afterSeq: seq - 1, seen: { seq, id: lastId } }
}

function differs(head: ChainHead, end: ChainHead): boolean {
  return head.seq === end.seq && (head.hash !== end.hash || head.lastId !== end.lastId)
}
