import type { WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import type { SealedEvent } from './event.ts'
import { listChainRun, readHead } from './event-store.ts'
import { readReceipt } from './hot-floor-store.ts'

/** An event, and those beside it in the chain as far as they are in the table. */
export type FoundEvent = {
  event: SealedEvent
  previous: SealedEvent | null
  next: SealedEvent | null
}

/**
 * The event of a chain that has an id, above `floorSeq`. No index has the id alone; but in a chain ids
 * rise with the numbers, so it is found by halving.
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
  const around = await listChainRun(db, { workspaceId, afterSeq: low - 2, limit: 3 })
  const at = (seq: number) => around.find(({ event }) => event.seq === seq)?.event ?? null
  const event = at(low)
  if (event?.id !== id) return null
  return { event, previous: at(low - 1), next: at(low + 1) }
}
