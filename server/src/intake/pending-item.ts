import type { EventFacets, EventId, PendingEvent } from '../ledger/event.ts'

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
}

/** The approximate size of an item in memory and in a statement. */
export function bytesOf({ event }: PendingItem): number {
  const texts = (event.actor?.length ?? 0) + (event.resource?.length ?? 0)
  return ITEM_BYTES + texts + (event.metadata?.length ?? 0)
}

const ITEM_BYTES = 1_024

/**
 * The outcome of an item. `refused`: the database rejects this row and would reject it again. `crowded`:
 * other writers always moved the head first, or another transaction locks it, and nothing was stored.
 */
export type Outcome =
  | { kind: 'stored'; id: EventId }
  | { kind: 'replayed'; id: EventId; hasOtherBody: boolean; storedCheck: number }
  | { kind: 'refused' }
  | { kind: 'crowded' }
