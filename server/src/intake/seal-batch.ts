import assert from 'node:assert/strict'
import type { Append, KeyedEvent } from '../ledger/append-store.ts'
import { sealEvent } from '../ledger/chain.ts'
import type { Salts } from '../ledger/commitment.ts'
import { type ChainHead, headAfter } from '../ledger/event.ts'
import { nextEventId } from '../ledger/event-id.ts'
import type { WorkspaceId } from '../platform/id.ts'
import type { PendingItem } from './pending-item.ts'

/** The clock and the sources of randomness. */
export type SealSources = { nowMs: number; random: () => number; drawSalts: () => Salts }

export type SealedBatch = Append & {
  /** The item of each row. `keyItems` has the item of each key, at the same index. */
  items: readonly PendingItem[]
  keyItems: readonly PendingItem[]
}

/**
 * Seals each item on its workspace's head, in order of arrival. Pure: the given heads aren't changed. The
 * moves are sorted, so that two writers lock the same heads in the same order.
 */
export function sealBatch(
  items: readonly PendingItem[],
  heads: ReadonlyMap<WorkspaceId, ChainHead>,
  { nowMs, random, drawSalts }: SealSources,
): SealedBatch {
  const ends = new Map<WorkspaceId, ChainHead>()
  const keys: KeyedEvent[] = []
  const keyItems: PendingItem[] = []
  const rows = items.map((item) => {
    const { workspaceId } = item.event
    const head = ends.get(workspaceId) ?? heads.get(workspaceId)
    assert(head, 'a workspace has a head from its beginning')
    // `findSeqAt` and queries rely on ids that are never earlier than the receipt, even
    // if the clock was set back since.
    const idMs = Math.max(nowMs, item.event.receivedAtMs)
    const id = nextEventId(head.lastId, idMs, random)
    const event = sealEvent(head, item.event, { id, salts: drawSalts() })
    ends.set(workspaceId, headAfter(event))
    if (item.key) {
      keys.push({ workspaceId, eventId: id, ...item.key })
      keyItems.push(item)
    }
    return { event, facets: item.facets }
  })
  const moves = [...ends]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([workspaceId, to]) => {
      const from = heads.get(workspaceId)
      assert(from && to.seq > from.seq, 'a batch moves a head forward')
      return { workspaceId, from, to }
    })
  return { rows, moves, keys, items, keyItems }
}
