import assert from 'node:assert/strict'
import { appendEvent, lockHead } from '../ledger/append-one-store.ts'
import { canonicalJson } from '../ledger/canonical.ts'
import { sealEvent } from '../ledger/chain.ts'
import { createSaltSource } from '../ledger/commitment.ts'
import type { EventId } from '../ledger/event.ts'
import { nextEventId } from '../ledger/event-id.ts'
import { facetsOf } from '../ledger/filter/facets.ts'
import { randomFraction } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { SubmittedEvent, EventOrigin } from './accept-event.ts'

/** An event that the service itself writes: without an idempotency key, a project or its own timestamp. */
type SystemEvent = Pick<SubmittedEvent, 'category' | 'action' | 'actor' | 'resource' | 'metadata'>

const drawSalts = createSaltSource()

/**
 * Appends an event within the caller's transaction, so that the event is stored if and only if the change
 * it describes is. Call this last, because it locks the chain head until the transaction ends.
 */
export async function appendInTransaction(
  trx: Queryable,
  { category, action, actor, resource, metadata }: SystemEvent,
  { companyId, workspaceId, traceId }: EventOrigin,
  nowMs: number,
): Promise<EventId> {
  const head = await lockHead(trx, workspaceId)
  assert(head, 'a workspace has a head from its beginning')
  const actorText = actor === undefined ? null : canonicalJson(actor)
  const resourceText = resource === undefined ? null : canonicalJson(resource)
  const event = sealEvent(
    head,
    {
      companyId,
      workspaceId,
      projectId: null,
      timestampMs: nowMs,
      receivedAtMs: nowMs,
      category,
      action,
      traceId,
      actor: actorText,
      resource: resourceText,
      metadata: metadata === undefined ? null : canonicalJson(metadata),
    },
    { id: nextEventId(head.lastId, nowMs, randomFraction), salts: drawSalts() },
  )
  await appendEvent(trx, event, facetsOf(actorText, resourceText))
  return event.id
}
