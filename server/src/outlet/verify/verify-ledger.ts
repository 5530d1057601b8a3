import { verifyLink } from '../../ledger/chain.ts'
import { type ChainHead, EMPTY_HEAD, headAfter } from '../../ledger/event.ts'
import { listChainRun, readHead } from '../../ledger/event-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'

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

/**
 * Walks one chain from its first event to its head and recomputes every hash from the stored
 * columns. Stops at the first event that does not hold: what follows proves nothing.
 */
export async function verifyChain(db: Queryable, workspaceId: WorkspaceId): Promise<ChainVerdict> {
  // Read first: events that are added meanwhile lie behind it.
  const end = await readHead(db, workspaceId)
  let head: ChainHead = EMPTY_HEAD
  const bad = (problem: string, seq: number, id: string | null): ChainVerdict => ({
    ok: false,
    workspaceId,
    events: head.seq,
    seq,
    id,
    problem,
  })
  if (!end) return bad('the workspace has no head', 0, null)
  for (;;) {
    const run = await listChainRun(db, { workspaceId, afterSeq: head.seq, limit: EVENTS_PER_READ })
    for (const event of run) {
      const verdict = verifyLink(head, event)
      if (!verdict.ok) return bad(verdict.problem, event.seq, event.id)
      head = headAfter(event)
      if (head.seq === end.seq && head.hash !== end.hash) {
        return bad(`the head says the hash is ${end.hash}`, event.seq, event.id)
      }
    }
    if (run.length < EVENTS_PER_READ) break
  }
  if (head.seq < end.seq) {
    return bad(`the head says there are ${end.seq} events; this one is missing`, head.seq + 1, null)
  }
  return { ok: true, workspaceId, events: head.seq }
}
