import { encodeAppend } from '../ledger/append-store.ts'
import type { ChainHead } from '../ledger/event.ts'
import type { WorkspaceId } from '../platform/id.ts'
import type { BindWriter } from '../platform/pg/bind-message.ts'
import type { Outcome, PendingItem } from './pending-item.ts'
import { sealBatch, type SealedBatch, type SealSources } from './seal-batch.ts'

/** The items that are committed together, and all that is known about them until they have their outcomes. */
export type Batch = {
  readonly items: readonly PendingItem[]
  /** The items without those that repeat a key of the batch. */
  readonly leaders: readonly PendingItem[]
  /** An item that repeats a key is a replay of the first item with that key, its leader. */
  readonly leaderOf: ReadonlyMap<PendingItem, PendingItem>
  readonly outcomes: Map<PendingItem, Outcome>
  /** Its buffer contains the messages of the seal, so no other batch uses it meanwhile. */
  readonly writer: BindWriter
  /** What is being stored, or was sealed ahead. Null if the items have to be sealed (again). */
  seal: Seal | null
}

/** A seal of some of the items, with the messages that store them. */
export type Seal = SealedBatch & { messages: Buffer }

export function createBatch(items: readonly PendingItem[], writer: BindWriter): Batch {
  const byKey = new Map<string, PendingItem>()
  const leaders: PendingItem[] = []
  const leaderOf = new Map<PendingItem, PendingItem>()
  for (const item of items) {
    const name = item.key && `${item.event.workspaceId}${item.key.keyDigest}`
    const leader = name === null ? undefined : byKey.get(name)
    if (leader) {
      leaderOf.set(item, leader)
      continue
    }
    if (name !== null) byKey.set(name, item)
    leaders.push(item)
  }
  return { items, leaders, leaderOf, outcomes: new Map(), writer, seal: null }
}

/** Seals and encodes some of the batch's items. Replaces the batch's previous seal. */
export function sealItems(
  batch: Batch,
  items: readonly PendingItem[],
  heads: ReadonlyMap<WorkspaceId, ChainHead>,
  sources: SealSources,
): Seal {
  const sealed = sealBatch(items, heads, sources)
  return (batch.seal = { ...sealed, messages: encodeAppend(sealed, batch.writer) })
}
