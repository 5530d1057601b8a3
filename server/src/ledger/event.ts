import type { CompanyId, Id, ProjectId, WorkspaceId } from '../platform/id.ts'
import { DAY_MS } from '../platform/time/time-units.ts'

export type EventId = Id<'event'>

/**
 * The parts of an event that may contain personal data. The chain stores a commitment to each instead of
 * its value, so that a part can be erased. The order is that of the keys in canonical JSON.
 */
export const PART_NAMES = ['actor', 'metadata', 'resource'] as const
export type PartName = (typeof PART_NAMES)[number]

/**
 * How far a timestamp may be ahead of the event's receipt. Timestamps in the past have no limit. Queries and
 * exports rely on it to skip events that were received earlier.
 */
export const TIMESTAMP_AHEAD_MS_MAX = DAY_MS

/** An event that intake has accepted. It is complete, but has no position in a chain yet. */
export type PendingEvent = {
  companyId: CompanyId
  workspaceId: WorkspaceId
  projectId: ProjectId | null
  timestampMs: number
  receivedAtMs: number
  category: string
  action: string
  traceId: string | null
  /** Canonical JSON, or null if absent. The same applies to `metadata` and `resource`. */
  actor: string | null
  metadata: string | null
  resource: string | null
}

/** An event with its position in the chain. Erasure removes a part and its salt, and nothing else. */
export type SealedEvent = PendingEvent & {
  id: EventId
  /** Starts at 1 in each workspace and has no gaps. */
  seq: number
  prevHash: string
  hash: string
  /** Canonical JSON object, part name → commitment in hex. This text is hashed and stored. */
  sealed: string
  /** Canonical JSON object, part name → salt in hex. */
  salts: string
}

/** The end of a workspace's chain, which the next event extends. */
export type ChainHead = { seq: number; hash: string; lastId: EventId | null }

/** The head of a chain without events. */
export const EMPTY_HEAD: ChainHead = { seq: 0, hash: '0'.repeat(64), lastId: null }

export function headAfter(event: SealedEvent): ChainHead {
  return { seq: event.seq, hash: event.hash, lastId: event.id }
}

/** Copies of the filtered values, stored in addition to the canonical text that contains them. */
export type EventFacets = {
  actorId: string | null
  actorEmail: string | null
  resourceType: string | null
  resourceId: string | null
}
