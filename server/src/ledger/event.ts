import type { CompanyId, Id, ProjectId, WorkspaceId } from '../platform/id.ts'

export type EventId = Id<'event'>

/**
 * The parts of an event that may hold personal data. The chain holds a commitment to each instead
 * of its value, so that one can be erased. In this order, which is that of their canonical text.
 */
export const PART_NAMES = ['actor', 'metadata', 'resource'] as const
export type PartName = (typeof PART_NAMES)[number]

/** An event that intake has accepted: complete, but with no place in a chain. */
export type PendingEvent = {
  companyId: CompanyId
  workspaceId: WorkspaceId
  projectId: ProjectId | null
  timestampMs: number
  receivedAtMs: number
  category: string
  action: string
  traceId: string | null
  /** Canonical JSON, or null when absent. So are `metadata` and `resource`. */
  actor: string | null
  metadata: string | null
  resource: string | null
}

/** An event with its place in the chain. An erasure takes a part and its salt, and nothing else. */
export type SealedEvent = PendingEvent & {
  id: EventId
  /** From 1, without gaps, in each workspace. */
  seq: number
  prevHash: string
  hash: string
  /** Canonical JSON object, part name → commitment in hex: the text that is hashed and stored. */
  sealed: string
  /** Canonical JSON object: part name → salt in hex. */
  salts: string
}

/** The end of a workspace's chain, which the next event extends. */
export type ChainHead = { seq: number; hash: string; lastId: EventId | null }

/** The head of a chain without events. */
export const EMPTY_HEAD: ChainHead = { seq: 0, hash: '0'.repeat(64), lastId: null }

export function headAfter(event: SealedEvent): ChainHead {
  return { seq: event.seq, hash: event.hash, lastId: event.id }
}

/** Copies of what is filtered on, beside the canonical text that holds them. */
export type EventFacets = {
  actorId: string | null
  actorEmail: string | null
  resourceType: string | null
  resourceId: string | null
}
