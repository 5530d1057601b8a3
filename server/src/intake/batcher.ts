import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../errors.ts'
import { FairQueue } from './fair-queue.ts'

type Waiter<In, Out> = {
  item: In
  resolve: (value: Out) => void
  reject: (reason: unknown) => void
}

type Batch<In, Out> = { items: In[]; waiters: Waiter<In, Out>[] }

export type BatcherLimits = {
  itemsPerBatchMax: number
  /** This many items may go before another one, however slow the batches are: a cold start is not an overload. */
  waitingMin: number
  /** However fast the batches are. */
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

/**
 * Group commit. Callers submit one item and wait; a single writer commits all waiting items in
 * one transaction. While a commit is in flight the next batch fills, so the batch size follows
 * the load by itself: an idle service commits single events at once, a busy one amortises.
 *
 * A caller is answered only after the commit that holds its item has returned. A caller that would wait
 * longer than `waitMsMax`, judged by how fast batches go, is refused immediately: a short queue keeps
 * the other answers quick, and a refused caller can go to another node. Owners take turns, so an owner
 * that has sent much waits, or is refused, before it delays the others.
 */
export class Batcher<In, Out> implements AsyncDisposable {
  readonly #commit: (items: In[]) => Promise<Out[]>
  readonly #limits: BatcherLimits
  readonly #weights: BatcherWeights<In>
  readonly #queue: FairQueue<Waiter<In, Out>>
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
    this.#queue = new FairQueue({
      bytesOf: ({ item }) => weights.bytesOf(item),
      ownerOf: ({ item }) => weights.ownerOf(item),
    })
  }

  get waiting(): number {
    return this.#queue.size + this.#readyCount
  }

  get #readyCount(): number {
    return this.#ahead?.waiters.length ?? 0
  }

  /**
   * True when `count` more items of `owner` would wait too long or weigh too much. An empty queue takes
   * any one call. An owner has no more bytes than are left for the others.
   */
  isFull(owner: string, count = 1): boolean {
    const { waitingMin, waitingMax, waitMsMax } = this.#limits
    const { bytes } = this.#queue
    const isHeavy = this.#queue.bytesOf(owner) > this.#weights.waitingBytesMax - bytes
    if (this.#closed || isHeavy) return true
    const inTime = Math.min(waitingMax, Math.max(waitingMin, this.#itemsPerMs * waitMsMax))
    if (this.waiting + count <= Math.max(count, inTime)) return false
    return this.#readyCount + this.#queue.turnsUntil(owner, count) > inTime
  }

  submit(item: In): Promise<Out> {
    if (this.isFull(this.#weights.ownerOf(item))) return Promise.reject(new ApiError('overloaded'))
    return new Promise((resolve, reject) => this.#enqueue({ item, resolve, reject }))
  }

  /** Items of one owner. All or none are let in; each is answered by itself. */
  submitAll(items: readonly In[]): Promise<PromiseSettledResult<Out>[]> {
    const [first] = items
    if (first === undefined) return Promise.resolve([])
    if (this.isFull(this.#weights.ownerOf(first), items.length)) {
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
    const ahead = this.#ahead?.waiters ?? []
    this.#ahead = null
    for (const waiter of [...ahead, ...this.#queue.takeAll()]) waiter.reject(reason)
  }

  #enqueue(waiter: Waiter<In, Out>): void {
    this.#queue.push(waiter)
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
    if (this.#queue.size < this.#limits.itemsPerBatchMax) return
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
      const before = this.#queue.size
      await new Promise(setImmediate)
      const after = this.#queue.size
      if (after === before || after >= this.#limits.itemsPerBatchMax) return
    }
  }

  #takeBatch(): Batch<In, Out> {
    const { bytesPerBatchMax: bytesMax, bytesPerOwnerMax } = this.#weights
    const { itemsPerBatchMax: itemsMax } = this.#limits
    const waiters = this.#queue.take({ itemsMax, bytesMax, bytesPerOwnerMax })
    return { waiters, items: waiters.map(({ item }) => item) }
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
