import { idTimeMs, type WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import { type ChainHead, EMPTY_HEAD } from './event.ts'
import { listChainLinks } from './event-store.ts'
import { readReceipt } from './hot/hot-floor-store.ts'
import { listSegments } from './segment/segment-store.ts'

/**
 * Finds the first event whose id has this time or a later one; one above the head if there is none. No
 * event below it was received at this time or later. Searches by the times in the ids, because they never
 * decrease along the chain, even if the clock is set back, and are never earlier than the receipt of their
 * event. Times of receipt can decrease, so searching by them could skip events.
 */
export async function findSeqAt(
  db: Queryable,
  workspaceId: WorkspaceId,
  { atMs, afterSeq = 0, headSeq }: { atMs: number; afterSeq?: number; headSeq: number },
): Promise<number> {
  return await binarySearch({ low: afterSeq + 1, high: headSeq + 1 }, async (seq) => {
    const { id } = await readReceipt(db, workspaceId, seq)
    return isIdFrom(id, atMs)
  })
}

/**
 * Whether an id has this time or a later one. An event that is not in the table was archived, so it is older.
 */
export function isIdFrom(id: string | null, atMs: number): id is string {
  return id !== null && idTimeMs(id) >= atMs
}

/**
 * Returns the seq after the last event that was received before this time. Searches by time of
 * receipt, because after a clock ran ahead, ids keep its time until the clock has caught up. Checks
 * the newest event first, because most windows end now. For a window that ends earlier, the result can
 * be off if the clock was wrong.
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
  return await binarySearch({ low: 1, high: headSeq }, isLater)
}

/** Binary search: the lowest number in the range for which `isLater` is true, or `high`. */
async function binarySearch(
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

/** The stored ID and hash of an event. Null if it is missing, or archived and not the last one of its file. */
export async function readPlace(
  db: Queryable,
  workspaceId: WorkspaceId,
  seq: number,
): Promise<ChainHead | null> {
  if (seq === 0) return EMPTY_HEAD
  const run = { workspaceId, fromSeq: seq, toSeq: seq }
  const [link] = await listChainLinks(db, run)
  if (link) return { seq, hash: link.hash, lastId: link.id }
  const [file] = await listSegments(db, { ...run, limit: 1 })
  return file?.lastSeq === seq ? { seq, hash: file.lastHash, lastId: file.lastId } : null
}
