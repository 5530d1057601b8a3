type Measures<Item> = {
  bytesOf: (item: Item) => number
  ownerOf: (item: Item) => string
}

/** The items of one owner, in order of arrival. */
type OwnerQueue<Item> = { items: Item[]; bytes: number }

type BatchLimits = {
  itemsMax: number
  bytesMax: number
  /** Limits an owner's bytes per batch, so that an owner with large items doesn't delay the others. */
  bytesPerOwnerMax: (owner: string) => number
}

/**
 * A queue per owner. Owners take turns, so the wait for an item depends on how many items its own owner has
 * queued and on the number of owners, not on how much another owner has sent.
 */
export class FairQueue<Item> {
  readonly #measures: Measures<Item>
  /** By owner, in the order of their turns. */
  readonly #queues = new Map<string, OwnerQueue<Item>>()
  #size = 0
  #bytes = 0

  constructor(measures: Measures<Item>) {
    this.#measures = measures
  }

  get size(): number {
    return this.#size
  }

  get bytes(): number {
    return this.#bytes
  }

  bytesOf(owner: string): number {
    return this.#queues.get(owner)?.bytes ?? 0
  }

  /** The oldest item of each owner. */
  firstItems(): Item[] {
    return [...this.#queues.values()].flatMap(({ items }) => items.slice(0, 1))
  }

  /** How many items leave the queue until the last of `count` further items of `owner` has left it. */
  turnsUntil(owner: string, count: number): number {
    const ownItems = (this.#queues.get(owner)?.items.length ?? 0) + count
    let turns = ownItems
    for (const [other, { items }] of this.#queues) {
      if (other !== owner) turns += Math.min(items.length, ownItems)
    }
    return turns
  }

  push(item: Item): void {
    const owner = this.#measures.ownerOf(item)
    const bytes = this.#measures.bytesOf(item)
    let queue = this.#queues.get(owner)
    if (!queue) this.#queues.set(owner, (queue = { items: [], bytes: 0 }))
    queue.items.push(item)
    queue.bytes += bytes
    this.#size += 1
    this.#bytes += bytes
  }

  /** Takes as many items as fit, and at least one: an item that is larger than the limit goes alone. */
  take({ itemsMax, bytesMax, bytesPerOwnerMax }: BatchLimits): Item[] {
    const taken: Item[] = []
    const bytesByOwner = new Map<string, number>()
    const itemsPerTurnMax = Math.max(1, Math.floor(itemsMax / this.#queues.size))
    let bytes = 0
    for (const [owner, queue] of this.#queues) {
      if (taken.length === itemsMax) break
      const end = Math.min(taken.length + itemsPerTurnMax, itemsMax)
      const ownerBytesBefore = bytesByOwner.get(owner) ?? 0
      const ownerBytesMax = bytesPerOwnerMax(owner)
      let ownerBytes = ownerBytesBefore
      let count = 0
      for (const item of queue.items) {
        const itemBytes = this.#measures.bytesOf(item)
        const isOverShare = ownerBytes > 0 && ownerBytes + itemBytes > ownerBytesMax
        const isFull = taken.length > 0 && bytes + itemBytes > bytesMax
        if (taken.length === end || isOverShare || isFull) break
        taken.push(item)
        bytes += itemBytes
        ownerBytes += itemBytes
        count += 1
      }
      // An owner that got no turn keeps its position. The others move to the end,
      // where this loop reaches them again.
      if (count === 0) continue
      queue.bytes -= ownerBytes - ownerBytesBefore
      queue.items.splice(0, count)
      this.#queues.delete(owner)
      if (queue.items.length > 0) this.#queues.set(owner, queue)
      bytesByOwner.set(owner, ownerBytes)
    }
    this.#size -= taken.length
    this.#bytes -= bytes
    return taken
  }

  takeAll(): Item[] {
    const items = [...this.#queues.values()].flatMap((queue) => queue.items)
    this.#queues.clear()
    this.#size = 0
    this.#bytes = 0
    return items
  }
}
