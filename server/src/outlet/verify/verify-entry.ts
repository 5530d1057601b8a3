import { verifyLink } from '../../ledger/chain.ts'
import type { ChainHead, EventFacets, SealedEvent } from '../../ledger/event.ts'
import {
  type ChainEntry,
  readHead,
  readHighestSeq,
  readLowestSeq,
} from '../../ledger/event-store.ts'
import { facetsOf } from '../../ledger/filter/facets.ts'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
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

/**
 * Each run but the first starts at the seq of the last checked event and skips only that event, so it finds an
 * event inserted with the same seq. Archived events that are still in the table were checked with the archive.
 */
export function runAfter({ seq, lastId }: ChainHead): {
  afterSeq: number
  seen: { seq: number; id: string } | null
} {
  if (lastId === null) return { afterSeq: 0, seen: null }
  return { afterSeq: seq - 1, seen: { seq, id: lastId } }
}

/**
 * An event names its company in what is hashed, so a workspace that was moved to another company in the database is
 * found. Undefined if there is no event, or no company to compare.
 */
export function foreignProblem(
  event: Pick<SealedEvent, 'seq' | 'companyId'> | undefined,
  companyId: CompanyId | undefined,
): string | null {
  if (!event || !companyId || event.companyId === companyId) return null
  return `event ${event.seq} belongs to company ${event.companyId}, but its workspace to company ${companyId}`
}

type Planted = { seq: number; id: string; problem: string }

/**
 * Finds an event before the chain, which verifying the chain doesn't reach, but lists show it, or a first event of
 * another company.
 */
export async function findPlantedBefore(
  db: Queryable,
  workspaceId: WorkspaceId,
  companyId?: CompanyId,
): Promise<Planted | null> {
  const lowest = await readLowestSeq(db, workspaceId)
  if (lowest === null) return null
  const { seq, id } = lowest
  if (seq < 1) {
    return { seq, id, problem: 'the event was inserted before event 1, the first of the chain' }
  }
  const problem = foreignProblem({ ...lowest, companyId: assertId(lowest.companyId) }, companyId)
  return problem === null ? null : { seq, id, problem }
}

/** Finds an event beyond the chain, which only verifying the whole chain reaches. */
export async function findPlantedBeyond(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<Planted | null> {
  const highest = await readHighestSeq(db, workspaceId)
  // Read after the event: events are stored together with the head, so a new event can't look planted.
  const head = await readHead(db, workspaceId)
  if (head === null || highest === null || highest.seq <= head.seq) return null
  const { seq, id } = highest
  return { seq, id, problem: `the event is beyond the head, which counts ${head.seq} events` }
}
