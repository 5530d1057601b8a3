import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../errors.ts'

type Waiter<In, Out> = {
  item: In
  resolve: (value: Out) => void
  reject: (reason: unknown) => void
}

type Batch<In, Out> = { items: In[]; waiters: Waiter<In, Out>[] }

export type BatcherLimits = {
  itemsPerBatchMax: number
  /** So many may wait however slow the batches go: a cold start is no overload. */
  waitingMin: number
  waitingMax: number
  waitMsMax: number
  /** How long to wait for company, beyond the turn; asked before each batch. */
  lingerMs?: () => number
}

/** Gets to work on a batch that goes next, while another is in flight. The commit gets the same array. */
export type PrepareBatch<In> = (items: In[]) => void

/** What items weigh, and how much is held: a few items can be as large as many. */
export type BatcherWeights<In> = {
  bytesOf: (item: In) => number
  bytesPerBatchMax: number
  /** Whose item it is. Items of one owner keep their order. */
  ownerOf: (item: In) => string
  /** Of one owner in a batch, so that one with large items doesn't delay the others. */
  bytesPerOwnerMax: number
  waitingBytesMax: number
}

const WEIGHTLESS: BatcherWeights<unknown> = {
  bytesOf: () => 0,
  bytesPerBatchMax: 0,
  ownerOf: () => '',
  bytesPerOwnerMax: 0,
  waitingBytesMax: 0,
}

/** How much of the newest batch's speed goes into the estimate. */
const NEWEST_SHARE = 0.2
const TURNS_MAX = 20
/** How far a batch looks past items of owners that have their share, in multiples of its size. */
const BATCHES_LOOKED_AT = 4

/**
 * Group commit. Callers submit one item and wait; a single writer commits all waiting items in
 * one transaction. While a commit is in flight the next batch fills, so the batch size follows
 * the load by itself: an idle service commits single events at once, a busy one amortises.
 *
 * A caller is answered only after the commit that holds its item has returned. Who would wait
 * longer than `waitMsMax`, judged by how fast batches go, is refused at once: a short queue keeps
 * the answers of those inside quick, and a refused caller can go to another node.
 */
export class Batcher<In, Out> implements AsyncDisposable {
  readonly #commit: (items: In[]) => Promise<Out[]>
  readonly #limits: BatcherLimits
  readonly #weights: BatcherWeights<In>
  #waitingBytes = 0
  #waiting: Waiter<In, Out>[] = []
  readonly #prepare: PrepareBatch<In>
  #isCommitting = false
  /** The batch that goes next, when a full one waited while another was in flight. */
  #ahead: Batch<In, Out> | null = null
  #writer: Promise<void> | null = null
  #closed = false
  /** Infinite until the first batch tells. */
  #itemsPerMs = Number.POSITIVE_INFINITY

  constructor(
    commit: (items: In[]) => Promise<Out[]>,
    limits: BatcherLimits,
    weights: BatcherWeights<In> = WEIGHTLESS,
    prepare: PrepareBatch<In> = () => {},
  ) {
    this.#commit = commit
    this.#prepare = prepare
    this.#limits = limits
    this.#weights = weights
  }

  get waiting(): number {
    return this.#waiting.length + (this.#ahead?.waiters.length ?? 0)
  }

  /**
   * True when `count` more items, of `owner` if it is known, would wait too long or weigh too much. An
   * empty queue takes any one call. One owner has at most half of the bytes.
   */
  isFull(count = 1, owner: string | null = null): boolean {
    const { waitingMin, waitingMax, waitMsMax } = this.#limits
    const inTime = Math.min(waitingMax, Math.max(waitingMin, this.#itemsPerMs * waitMsMax))
    const { waitingBytesMax } = this.#weights
    const ownerBytesMax = waitingBytesMax / 2
    const isHeavy =
      this.#waitingBytes > waitingBytesMax ||
      (owner !== null &&
        this.#waitingBytes > ownerBytesMax &&
        this.#bytesWaitingOf(owner) > ownerBytesMax)
    return this.#closed || isHeavy || this.waiting + count > Math.max(count, inTime)
  }

  /** Counted only when much waits, so that the ordinary case keeps no books. */
  #bytesWaitingOf(owner: string): number {
    const { bytesOf, ownerOf } = this.#weights
    let bytes = 0
    for (const { item } of this.#waiting) if (ownerOf(item) === owner) bytes += bytesOf(item)
    return bytes
  }

  submit(item: In): Promise<Out> {
    if (this.isFull(1, this.#weights.ownerOf(item)))
      return Promise.reject(new ApiError('overloaded'))
    return new Promise((resolve, reject) => this.#enqueue({ item, resolve, reject }))
  }

  /** Items of one owner. All or none are let in; each is answered by itself. */
  submitAll(items: readonly In[]): Promise<PromiseSettledResult<Out>[]> {
    const [first] = items
    if (first === undefined) return Promise.resolve([])
    if (this.isFull(items.length, this.#weights.ownerOf(first))) {
      return Promise.reject(new ApiError('overloaded'))
    }
    return new Promise((resolveAll) => {
      const results: PromiseSettledResult<Out>[] = Array.from({ length: items.length })
      let left = items.length
      const settle = (place: number, result: PromiseSettledResult<Out>) => {
        results[place] = result
        left -= 1
        if (left === 0) resolveAll(results)
      }
      items.forEach((item, place) =>
        this.#enqueue({
          item,
          resolve: (value) => settle(place, { status: 'fulfilled', value }),
          reject: (reason) => settle(place, { status: 'rejected', reason }),
        }),
      )
    })
  }

  /** Fails everyone who waits: what stopped the writer would only stop them later. */
  rejectWaiting(reason: unknown): void {
    this.#waitingBytes = 0
    const ahead = this.#ahead?.waiters ?? []
    this.#ahead = null
    for (const waiter of [...ahead, ...this.#waiting.splice(0)]) waiter.reject(reason)
  }

  #enqueue(waiter: Waiter<In, Out>): void {
    this.#waiting.push(waiter)
    this.#waitingBytes += this.#weights.bytesOf(waiter.item)
    this.#writer ??= this.#drain()
    this.#prepareNext()
  }

  async #drain(): Promise<void> {
    while (this.waiting > 0) {
      if (!this.#ahead) await this.#gather()
      const batch = this.#ahead ?? this.#takeBatch()
      this.#ahead = null
      await this.#run(batch)
    }
    // Same turn as the emptiness check above, so a submit between the two cannot be lost.
    this.#writer = null
  }

  async #run({ items, waiters }: Batch<In, Out>): Promise<void> {
    const startedAtMs = performance.now()
    try {
      this.#isCommitting = true
      const committing = this.#commit(items)
      this.#prepareNext()
      const results = await committing
      assert.equal(results.length, waiters.length)
      // The assertion above: there is a result for every waiter.
      waiters.forEach((waiter, index) => waiter.resolve(results[index]!))
    } catch (cause) {
      // One failed batch fails its own callers only (the commit itself isolates a bad row).
      for (const waiter of waiters) waiter.reject(cause)
    } finally {
      this.#isCommitting = false
    }
    this.#learnSpeed(waiters.length / (performance.now() - startedAtMs))
  }

  /** A batch that is full gains nothing by waiting, so it is got ready while another is in flight. */
  #prepareNext(): void {
    if (!this.#isCommitting || this.#ahead) return
    if (this.#waiting.length < this.#limits.itemsPerBatchMax) return
    this.#ahead = this.#takeBatch()
    try {
      this.#prepare(this.#ahead.items)
    } catch {
      // The commit does the same work and meets the same fault, where it fails its own callers only.
    }
  }

  /**
   * Lets requests that are just arriving join, for as long as every turn of the event loop brings
   * more. The callers of the last batch come back in such a wave: without this half of them miss
   * the next batch, and batches stay half as large for good. An idle service waits one turn.
   */
  async #gather(): Promise<void> {
    const lingerMs = this.#limits.lingerMs?.() ?? 0
    if (lingerMs > 0) await delay(lingerMs)
    for (let turn = 0; turn < TURNS_MAX; turn += 1) {
      const before = this.#waiting.length
      await new Promise(setImmediate)
      const after = this.#waiting.length
      if (after === before || after >= this.#limits.itemsPerBatchMax) return
    }
  }

  /** As many as fit, and at least one: an item that is too large for company goes alone. */
  #takeBatch(): Batch<In, Out> {
    const { bytesOf, bytesPerOwnerMax } = this.#weights
    let bytes = 0
    let count = 0
    for (const { item } of this.#waiting) {
      const weight = bytesOf(item)
      if (count === this.#limits.itemsPerBatchMax) break
      if (count > 0 && bytes + weight > bytesPerOwnerMax) return this.#takeSharedBatch()
      bytes += weight
      count += 1
    }
    this.#waitingBytes -= bytes
    return batchOf(this.#waiting.splice(0, count))
  }

  /**
   * The same for items that are more than one owner's share. An owner that has its share waits for the
   * next batch with all of its later items, and the items of others pass them.
   */
  #takeSharedBatch(): Batch<In, Out> {
    const { bytesOf, bytesPerBatchMax, ownerOf, bytesPerOwnerMax } = this.#weights
    const { itemsPerBatchMax } = this.#limits
    const bytesByOwner = new Map<string, number>()
    const taken: Waiter<In, Out>[] = []
    const left: Waiter<In, Out>[] = []
    let bytes = 0
    for (const waiter of this.#waiting.slice(0, BATCHES_LOOKED_AT * itemsPerBatchMax)) {
      if (taken.length === itemsPerBatchMax) break
      const weight = bytesOf(waiter.item)
      const owner = ownerOf(waiter.item)
      const ofOwner = bytesByOwner.get(owner) ?? 0
      const isOwnerFull = ofOwner > 0 && ofOwner + weight > bytesPerOwnerMax
      const isFull = taken.length > 0 && bytes + weight > bytesPerBatchMax
      if (isOwnerFull || isFull) {
        bytesByOwner.set(owner, Number.POSITIVE_INFINITY)
        left.push(waiter)
        continue
      }
      bytesByOwner.set(owner, ofOwner + weight)
      bytes += weight
      taken.push(waiter)
    }
    this.#waitingBytes -= bytes
    this.#waiting.splice(0, taken.length + left.length, ...left)
    return batchOf(taken)
  }

  #learnSpeed(itemsPerMs: number): void {
    this.#itemsPerMs = Number.isFinite(this.#itemsPerMs)
      ? this.#itemsPerMs * (1 - NEWEST_SHARE) + itemsPerMs * NEWEST_SHARE
      : itemsPerMs
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await this.#writer
  }
}

function batchOf<In, Out>(waiters: Waiter<In, Out>[]): Batch<In, Out> {
  return { waiters, items: waiters.map(({ item }) => item) }
}
