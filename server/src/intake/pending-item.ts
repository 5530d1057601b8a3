import type { EventFacets, EventId, PendingEvent } from '../ledger/event.ts'
import type { Span } from '../platform/otlp/tracer.ts'

/** The span of the request that sent an event, and its child for the wait until the event's batch. */
export type IngestTrace = { request: Span; wait: Span }

/** One caller's event on its way into the ledger. */
export type PendingItem = {
  event: PendingEvent
  facets: EventFacets
  /**
   * Null without an idempotency key. The digest (128 bits in hex) identifies the key. The
   * check (CRC-32 of the body) only detects a client that reuses a key for a different body,
   * so a stronger hash has no benefit.
   */
  key: { keyDigest: string; bodyCheck: number } | null
  /** Missing unless the request is sampled, so that others don't pay for it. */
  trace?: IngestTrace
}

/**
 * The approximate size of an item in memory and in the database, which determines how long its batch takes.
 * The fields that can be filtered by are also in an index.
 */
export function bytesOf({ event, facets }: PendingItem): number {
  const { category, action, actor, resource, metadata } = event
  const { actorId, actorEmail, resourceType, resourceId } = facets
  const indexed = utf8Bytes(category, action, actorId, actorEmail, resourceType, resourceId)
  return ITEM_BYTES + 2 * indexed + utf8Bytes(actor, resource, metadata)
}

const ITEM_BYTES = 1_024

function utf8Bytes(...texts: (string | null)[]): number {
  let bytes = 0
  for (const text of texts) if (text !== null) bytes += Buffer.byteLength(text)
  return bytes
}

/**
 * The outcome of an item. `refused`: the database rejects this row and would reject it again. `crowded`:
 * other writers always moved the head first, or another transaction locks it, and nothing was stored.
 */
export type Outcome =
  | { kind: 'stored'; id: EventId }
  | { kind: 'replayed'; id: EventId; hasOtherBody: boolean; storedCheck: number }
  | { kind: 'refused' }
  | { kind: 'crowded' }
