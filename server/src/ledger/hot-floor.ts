import type { WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import { readHotEdge, readReceipt } from './hot-floor-store.ts'

/**
 * Where hot events begin in a chain: those above `floorSeq`, whose first has the id `fromId`; null
 * when none is hot.
 */
export type HotFloor = { floorSeq: number; fromId: string | null }

/**
 * The hot events are those from the first one on that was received at this time or later. The event
 * above `afterSeq` is nearly always it; else by halving: in a chain, seq and time of receipt rise
 * together. What is missing was archived, which happens to the oldest first.
 */
export async function findHotFloor(
  db: Queryable,
  workspaceId: WorkspaceId,
  { hotSinceMs, afterSeq }: { hotSinceMs: number; afterSeq: number | null },
): Promise<HotFloor> {
  const edge = await readHotEdge(db, workspaceId, { afterSeq })
  const isHot = (receivedAtMs: number | null) => receivedAtMs !== null && receivedAtMs >= hotSinceMs
  if (isHot(edge.receivedAtMs)) return { floorSeq: edge.afterSeq, fromId: edge.id }
  let low = edge.afterSeq + 1
  let high = edge.headSeq + 1
  let fromId: string | null = null
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const { id, receivedAtMs } = await readReceipt(db, workspaceId, middle)
    if (isHot(receivedAtMs)) {
      high = middle
      fromId = id
    } else low = middle + 1
  }
  return { floorSeq: low - 1, fromId }
}
