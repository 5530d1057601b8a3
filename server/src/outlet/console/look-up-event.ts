import type { EventId } from '../../ledger/event.ts'
import { findEvent, type FoundEvent } from '../../ledger/find-event.ts'
import type { Queryable } from '../../platform/pg.ts'
import { readEach, type Scope } from './scope.ts'

/** The hot event with this id, in whichever of the workspaces it is. */
export async function lookUpEvent(
  db: Queryable,
  scope: Scope,
  id: EventId,
): Promise<FoundEvent | null> {
  const found = await readEach(db, scope, (workspaceId, { floorSeq }) =>
    findEvent(db, workspaceId, { id, floorSeq }),
  )
  return found.find((event) => event !== null) ?? null
}
