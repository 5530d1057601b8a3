import type { EventId } from '../../ledger/event.ts'
import { type EventWithNeighbors, findWithNeighbors } from '../../ledger/event-neighbors.ts'
import type { Scope, Searches } from './searches.ts'

/** Finds the hot event with this id in any of the workspaces. */
export async function lookUpEvent(
  searches: Searches,
  scope: Scope,
  id: EventId,
): Promise<EventWithNeighbors | null> {
  const found = await searches.readEach(scope, (db, workspaceId, { floorSeq }) =>
    findWithNeighbors(db, workspaceId, { id, floorSeq }),
  )
  return found.find((event) => event !== null) ?? null
}
