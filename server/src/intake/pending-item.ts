import type { EventFacets, EventId, PendingEvent } from '../ledger/event.ts'

/** One caller's event on its way into the ledger. */
export type PendingItem = {
  event: PendingEvent
  facets: EventFacets
  /**
   * Null without an idempotency key. The digest (128 bits in hex) decides; the check (CRC-32 of the
   * body) only tells a client that reuses a key for something else, and a kinder hash buys nothing.
   */
  key: { keyDigest: string; bodyCheck: number } | null
}

/** About what an item takes in memory and in a statement. */
export function bytesOf({ event }: PendingItem): number {
  const texts = (event.actor?.length ?? 0) + (event.resource?.length ?? 0)
  return ITEM_BYTES + texts + (event.metadata?.length ?? 0)
}

const ITEM_BYTES = 1_024

/**
 * What became of an item. `refused`: the database rejects this row, and would reject it again.
 * `crowded`: other writers were always first, or another transaction locks the workspace's head. It is
 * certain that nothing was stored.
 */
export type Outcome =
  | { kind: 'stored'; id: EventId }
  | { kind: 'replayed'; id: EventId; hasOtherBody: boolean; storedCheck: number }
  | { kind: 'refused' }
  | { kind: 'crowded' }
