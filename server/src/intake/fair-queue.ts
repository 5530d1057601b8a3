type Measures<Item> = {
  bytesOf: (item: Item) => number
  ownerOf: (item: Item) => string
}

/** The items of one owner, in their order. */
type Line<Item> = { items: Item[]; bytes: number }

export type BatchLimits = {
  itemsMax: number
  bytesMax: number
  /** Of one owner, so that one with large items doesn't delay the others. */
  bytesPerOwnerMax: number
}

/**
 * Items that wait in a line per owner. Owners take turns, so how long an item waits depends on the items
 * of its own owner and on how many owners there are, not on how much another owner has sent.
 */
export class FairQueue<Item> {
  readonly #measures: Measures<Item>
  /** By owner, in the order of their turns. */
  readonly #lines = new Map<string, Line<Item>>()
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
    return this.#lines.get(owner)?.bytes ?? 0
  }

  /** How many items are taken up to and including the last of `count` further items of `owner`. */
  turnsUntil(owner: string, count: number): number {
    const own = (this.#lines.get(owner)?.items.length ?? 0) + count
    let turns = own
    for (const [other, { items }] of this.#lines) {
      if (other !== owner) turns += Math.min(items.length, own)
    }
    return turns
  }

  push(item: Item): void {
    const owner = this.#measures.ownerOf(item)
    const bytes = this.#measures.bytesOf(item)
    let line = this.#lines.get(owner)
    if (!line) this.#lines.set(owner, (line = { items: [], bytes: 0 }))
    line.items.push(item)
    line.bytes += bytes
    this.#size += 1
    this.#bytes += bytes
  }

  /** As many items as fit, and at least one: an item that is larger than its share goes alone. */
  take({ itemsMax, bytesMax, bytesPerOwnerMax }: BatchLimits): Item[] {
    const taken: Item[] = []
    const bytesByOwner = new Map<string, number>()
    const turnMax = Math.max(1, Math.floor(itemsMax / this.#lines.size))
    let bytes = 0
    for (const [owner, line] of this.#lines) {
      if (taken.length === itemsMax) break
      const end = Math.min(taken.length + turnMax, itemsMax)
      const before = bytesByOwner.get(owner) ?? 0
      let ofOwner = before
      let count = 0
      for (const item of line.items) {
        const weight = this.#measures.bytesOf(item)
        const hasShare = ofOwner > 0 && ofOwner + weight > bytesPerOwnerMax
        const isFull = taken.length > 0 && bytes + weight > bytesMax
        if (taken.length === end || hasShare || isFull) break
        taken.push(item)
        bytes += weight
        ofOwner += weight
        count += 1
      }
      // A line without a turn keeps its place. Others go to the end, where the loop meets them again.
      if (count === 0) continue
      line.bytes -= ofOwner - before
      line.items.splice(0, count)
      this.#lines.delete(owner)
      if (line.items.length > 0) this.#lines.set(owner, line)
      bytesByOwner.set(owner, ofOwner)
    }
    this.#size -= taken.length
    this.#bytes -= bytes
    return taken
  }

  takeAll(): Item[] {
    const items = [...this.#lines.values()].flatMap((line) => line.items)
    this.#lines.clear()
    this.#size = 0
    this.#bytes = 0
    return items
  }
}
