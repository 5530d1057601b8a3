import type { WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { SealedEvent } from './event.ts'
import { type ChainLink, listChainLinks, listChainRun, readHead } from './event-store.ts'
import { readReceipt } from './hot/hot-floor-store.ts'

/** An event and its links to its neighbors in the chain, if these are in the table. */
export type FoundEvent = {
  event: SealedEvent
  previous: ChainLink | null
  next: ChainLink | null
}

/**
 * Finds an event above `floorSeq` by its id. No index starts with the id, but ids ascend along a chain, so
 * a binary search by seq finds it.
 */
export async function findEvent(
  db: Queryable,
  workspaceId: WorkspaceId,
  { id, floorSeq }: { id: string; floorSeq: number },
): Promise<FoundEvent | null> {
  let low = floorSeq + 1
  let high = ((await readHead(db, workspaceId))?.seq ?? 0) + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const found = await readReceipt(db, workspaceId, middle)
    if (found.id !== null && found.id >= id) high = middle
    else low = middle + 1
  }
  const run = await listChainRun(db, { workspaceId, afterSeq: low - 1, limit: 1 })
  const event = run.entries[0]?.event
  if (event?.id !== id) return null
  const { seq } = event
  const links = await listChainLinks(db, { workspaceId, fromSeq: seq - 1, toSeq: seq + 1 })
  const at = (neighborSeq: number) => links.find((link) => link.seq === neighborSeq) ?? null
  return { event, previous: at(seq - 1), next: at(seq + 1) }
}
