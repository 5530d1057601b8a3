import type { WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { EventId, SealedEvent } from './event.ts'
import { type ChainLink, listChainLinks } from './event-store.ts'
import { findStoredEvent } from './find-event-store.ts'

/** An event and its links to its neighbors in the chain, if these are in the table. */
export type EventWithNeighbors = {
  event: SealedEvent
  previous: ChainLink | null
  next: ChainLink | null
}

/** Finds an event above `floorSeq` by its id. */
export async function findWithNeighbors(
  db: Queryable,
  workspaceId: WorkspaceId,
  { id, floorSeq }: { id: EventId; floorSeq: number },
): Promise<EventWithNeighbors | null> {
  const event = await findStoredEvent(db, { workspaceIds: [workspaceId], id })
  if (event === null || event.seq <= floorSeq) return null
  const { seq } = event
  const links = await listChainLinks(db, { workspaceId, fromSeq: seq - 1, toSeq: seq + 1 })
  const at = (neighborSeq: number) => links.find((link) => link.seq === neighborSeq) ?? null
  return { event, previous: at(seq - 1), next: at(seq + 1) }
}
