import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { findSeqAt, isIdFrom } from '../chain-search.ts'
import { readHotEdge, readReceipt } from './hot-floor-store.ts'

/**
 * Where the hot events of a chain begin: above `floorSeq`. `fromId` is the id of the first one, or null if
 * no event is hot.
 */
export type HotFloor = { floorSeq: number; fromId: string | null }

/**
 * Finds the first hot event: the first whose id has this time or a later one (see `findSeqAt`). It is
 * nearly always the event after `afterSeq`.
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
