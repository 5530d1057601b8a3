import type { EventFacets, EventId, PendingEvent } from '../ledger/event.ts'

/** One caller's event on its way into the ledger. */
export type PendingItem = {
  event: PendingEvent
  facets: EventFacets
  /** Digests of 128 bits in hex; null without an idempotency key. */
  key: { keyDigest: string; bodyDigest: string } | null
}

/** What became of it. `refused`: the database does not take this row, whoever brings it. */
export type Outcome =
  | { kind: 'stored'; id: EventId }
  | { kind: 'replayed'; id: EventId; hasOtherBody: boolean }
  | { kind: 'refused' }
