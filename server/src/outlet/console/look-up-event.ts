import type { EventId } from '../../ledger/event.ts'
import { findEvent, type FoundEvent } from '../../ledger/find-event.ts'
import type { Scope, Searches } from './searches.ts'

/** The hot event with this id, in whichever of the workspaces it is. */
export async function lookUpEvent(
  searches: Searches,
  scope: Scope,
  id: EventId,
): Promise<FoundEvent | null> {
  const found = await searches.readEach(scope, (db, workspaceId, { floorSeq }) =>
    findEvent(db, workspaceId, { id, floorSeq }),
  )
  return found.find((event) => event !== null) ?? null
}
