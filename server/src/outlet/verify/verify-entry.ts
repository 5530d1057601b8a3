import { verifyLink } from '../../ledger/chain.ts'
import type { ChainHead, SealedEvent } from '../../ledger/event.ts'
import { type ChainEntry, listChainRun } from '../../ledger/event-store.ts'
import { facetsOf } from '../../ledger/filter/facets.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** Why an event of the table doesn't continue the chain after `head`. Null if it does. */
export function entryProblem(
  head: ChainHead,
  { event, facets, hasWholeMs }: ChainEntry,
): string | null {
  const verdict = verifyLink(head, event)
  if (!verdict.ok) return verdict.problem
  if (!hasWholeMs) return 'a time is more precise than the milliseconds that were hashed'
  const truth = facetsOf(event.actor, event.resource)
  const wrong = FACET_NAMES.find((name) => facets[name] !== truth[name])
  return wrong ? `the indexed value of ${wrong} differs from what was hashed` : null
}

const FACET_NAMES = ['actorId', 'actorEmail', 'resourceType', 'resourceId'] as const

export const PLANTED = 'a chain starts with event 1'

/** The first event below the lowest valid seq. No walk along the chain meets it, but lists contain it. */
export async function findPlanted(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<SealedEvent | null> {
  const lowest = { workspaceId, afterSeq: Number.MIN_SAFE_INTEGER, seen: null, limit: 1 }
  const [entry] = (await listChainRun(db, lowest)).entries
  return entry && entry.event.seq < 1 ? entry.event : null
}
