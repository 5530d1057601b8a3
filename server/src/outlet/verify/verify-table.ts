import { type ChainHead, headAfter } from '../../ledger/event.ts'
import { listChainRun, readHead } from '../../ledger/event-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Database } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { SERVICE, type SliceOwner } from '../../platform/scheduling/thread-share.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { confirmRows } from './confirm-rows.ts'
import type { VerifySteps } from './verify-archive.ts'
import { entryProblem, runAfter } from './verify-entry.ts'

const EVENTS_PER_READ = 2_000

/** How a chain or a part of it is read from the table. */
export type TableSteps = VerifySteps & {
  eventsPerRead?: number
  /** Whose CPU share the work counts against. The default is the service's own. */
  owner?: SliceOwner
}

type TableVerdict =
  | { ok: true; head: ChainHead }
  | { ok: false; head: ChainHead; seq: number; id: string | null; problem: string }

/**
 * Follows a chain in the table from the last verified event, up to `toSeq`, or to its end if that is null. `end` is the
 * stored head, read before. A part of the chain ends before `end`.
 */
export async function verifyTable(
  database: Pick<Database, 'pool' | 'db'>,
  chain: { workspaceId: WorkspaceId; head: ChainHead; end: ChainHead; toSeq: number | null },
  { eventsPerRead = EVENTS_PER_READ, onProgress, pause, hashes, owner = SERVICE }: TableSteps = {},
): Promise<TableVerdict> {
  const { db } = database
  const { workspaceId, end } = chain
  const toSeq = chain.toSeq ?? Infinity
  let { head } = chain
  let behind: ChainHead | null = null
  const bad = (problem: string, seq: number, id: string | null): TableVerdict => ({
    ok: false,
    head,
    seq,
    id,
    problem,
  })
  const mismatch = headProblem(head, end)
  if (mismatch !== null) return bad(mismatch, head.seq, head.lastId)
  const slice = new TimeSlice(owner)
  const endStep = async (): Promise<void> => {
    onProgress?.(head.seq)
    await hashes?.flush()
  }
  for (;;) {
    // The last event, and those that were added meanwhile, are compared with the head below.
    const stretch = { workspaceId, head, toSeq: Math.min(end.seq - 1, toSeq), eventsPerRead, owner }
    for await (head of confirmRows(database, stretch, ({ hash }) => hashes?.add(hash))) {
      await endStep()
      await pause?.()
    }
    if (head.seq >= toSeq) return { ok: true, head }
    const limit = Math.min(eventsPerRead, toSeq - head.seq)
    const next = { workspaceId, limit, ...runAfter(head) }
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
  return { ok: true, head }
}

/** Why the stored head isn't that of the chain. Null if the chain continues. */
function headProblem(head: ChainHead, end: ChainHead): string | null {
  if (head.seq !== end.seq || (head.hash === end.hash && head.lastId === end.lastId)) return null
  return `the head has the hash ${end.hash} and the id ${end.lastId}`
}
