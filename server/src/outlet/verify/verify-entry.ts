import { verifyLink } from '../../ledger/chain.ts'
import type { ChainHead, EventFacets, SealedEvent } from '../../ledger/event.ts'
import { type ChainEntry, readHead, readSeqBounds } from '../../ledger/event-store.ts'
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
  if (areFacetsOf(event, facets)) return null
  const truth = facetsOf(event.actor, event.resource)
  const wrong = FACET_NAMES.find((name) => facets[name] !== truth[name])
  return wrong ? `the indexed value of ${wrong} differs from what was hashed` : null
}

/**
 * Whether the parts contain exactly these values, without parsing them, which takes several times as long. False
 * also if a value is missing or has characters that JSON escapes.
 */
function areFacetsOf({ actor, resource }: SealedEvent, facets: EventFacets): boolean {
  const { actorEmail, actorId, resourceId, resourceType } = facets
  if (actorEmail === null || actorId === null || resourceId === null || resourceType === null) {
    return false
  }
  if (HAS_ESCAPES.test(actorEmail + actorId + resourceId + resourceType)) return false
  const known = `{"email":"${actorEmail}","id":"${actorId}"`
  return (
    resource === `{"id":"${resourceId}","type":"${resourceType}"}` &&
    actor?.startsWith(known) === true &&
    REST_OF_ACTOR.test(actor.slice(known.length))
  )
}

const HAS_ESCAPES = /["\\]/
const REST_OF_ACTOR = /^(?:,"role":"[^"\\]*")?\}$/

const FACET_NAMES = ['actorId', 'actorEmail', 'resourceType', 'resourceId'] as const

/** Finds an event whose seq is outside its chain. Verifying the chain doesn't reach it, but lists show it. */
export async function findPlanted(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<{ seq: number; id: string | null; problem: string } | null> {
  const bounds = await readSeqBounds(db, workspaceId)
  if (bounds.lowest && bounds.lowest.seq < 1) {
    return {
      ...bounds.lowest,
      problem: 'the event was inserted before event 1, the first of the chain',
    }
  }
  // Read after the bounds: an event and the head are stored together, so a new event can't look planted.
  const head = await readHead(db, workspaceId)
  if (head === null || !bounds.highest || bounds.highest.seq <= head.seq) return null
  const problem = `the event is beyond the head, which counts ${head.seq} events`
  return { ...bounds.highest, problem }
}
