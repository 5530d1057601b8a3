/** The end of a chain on one server. */
export type ChainPosition = {
  seq: number
  /** Of the last event. It covers all events before it, so equal hashes mean equal chains. */
  hash: string
  /** The events up to here may be missing from the table, because they are archived. */
  archivedSeq: number
  isStandby: boolean
}

/**
 * What a replica's snapshot has, compared with what the primary had before the snapshot was taken:
 *
 * - `same`: the same events
 * - `ahead`: more events, which the primary must confirm: a replica of a former primary can have events that
 *   were lost in a failover
 * - `archived`: a later archive run
 * - `behind`: not all events yet
 * - `other`: another history
 */
type Comparison = 'same' | 'ahead' | 'archived' | 'behind' | 'other'

export function compare(primary: ChainPosition, replica: ChainPosition | null): Comparison {
  if (replica === null || replica.seq < primary.seq) return 'behind'
  if (replica.archivedSeq > primary.archivedSeq) return 'archived'
  if (replica.seq > primary.seq) return 'ahead'
  return replica.hash === primary.hash ? 'same' : 'other'
}
