import { idTimeMs, type WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import { readReceipt } from './hot-floor-store.ts'

/**
 * The seq below which no event was received at this time or later; one above the last if none was.
 * Searches by the times in the ids, which rise along the chain even if the clock is set back and are never
 * before the receipt of their event. Times of receipt can fall, so a search by them could skip events.
 */
export async function findSeqAt(
  db: Queryable,
  workspaceId: WorkspaceId,
  { atMs, afterSeq = 0, headSeq }: { atMs: number; afterSeq?: number; headSeq: number },
): Promise<number> {
  return await halve({ low: afterSeq + 1, high: headSeq + 1 }, async (seq) => {
    const { id } = await readReceipt(db, workspaceId, seq)
    return isIdFrom(id, atMs)
  })
}

/** Whether an id is of this time or later. An event without one was archived, so it is older. */
export function isIdFrom(id: string | null, atMs: number): id is string {
  return id !== null && idTimeMs(id) >= atMs
}

/**
 * One above the last event that was received before this time. Searches by the times of receipt: after
 * a clock ran ahead, the ids keep its time until the clock has caught up. Checks the newest event first,
 * because most windows end now. For one that ends earlier, the result can be off if the clock was wrong.
 */
export async function findEndSeq(
  db: Queryable,
  workspaceId: WorkspaceId,
  { toMs, headSeq }: { toMs: number; headSeq: number },
): Promise<number> {
  const isLater = async (seq: number): Promise<boolean> => {
    const { receivedAtMs } = await readReceipt(db, workspaceId, seq)
    return receivedAtMs !== null && receivedAtMs >= toMs
  }
  if (!(await isLater(headSeq))) return headSeq + 1
  return await halve({ low: 1, high: headSeq }, isLater)
}

/** The lowest number of the range for which `isLater` holds, or `high`. */
async function halve(
  range: { low: number; high: number },
  isLater: (seq: number) => Promise<boolean>,
): Promise<number> {
  let { low, high } = range
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (await isLater(middle)) high = middle
    else low = middle + 1
  }
  return low
}
