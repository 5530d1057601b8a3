import type { WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import { findSeqAt, isIdFrom } from './chain-search.ts'
import { readHotEdge, readReceipt } from './hot-floor-store.ts'

/**
 * Where hot events begin in a chain: those above `floorSeq`, whose first has the id `fromId`; null
 * when none is hot.
 */
export type HotFloor = { floorSeq: number; fromId: string | null }

/**
 * Hot are the events from the first one on whose id is of this time or later, as `findSeqAt` finds it. The
 * event above `afterSeq` is nearly always that one.
 */
export async function findHotFloor(
  db: Queryable,
  workspaceId: WorkspaceId,
  { hotSinceMs, afterSeq }: { hotSinceMs: number; afterSeq: number | null },
): Promise<HotFloor> {
  const edge = await readHotEdge(db, workspaceId, { afterSeq })
  if (isIdFrom(edge.id, hotSinceMs)) return { floorSeq: edge.afterSeq, fromId: edge.id }
  const seq = await findSeqAt(db, workspaceId, { ...edge, atMs: hotSinceMs })
  const { id } = await readReceipt(db, workspaceId, seq)
  return { floorSeq: seq - 1, fromId: id }
}
