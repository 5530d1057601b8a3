import assert from 'node:assert/strict'
import { ApiError } from '../errors.ts'

type Waiter<In, Out> = {
  item: In
  resolve: (value: Out) => void
  reject: (reason: unknown) => void
}

export type BatcherLimits = {
  itemsPerBatchMax: number
  /** So many may wait however slow the batches go: a cold start is no overload. */
  waitingMin: number
  waitingMax: number
  waitMsMax: number
}

/** How much of the newest batch's speed goes into the estimate. */
const NEWEST_SHARE = 0.2

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
  #waiting: Waiter<In, Out>[] = []
  #writer: Promise<void> | null = null
  #closed = false
  /** Infinite until the first batch tells. */
  #itemsPerMs = Number.POSITIVE_INFINITY

  constructor(commit: (items: In[]) => Promise<Out[]>, limits: BatcherLimits) {
    this.#commit = commit
    this.#limits = limits
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** True when `count` more items would wait too long. An empty queue takes any one call. */
  isFull(count = 1): boolean {
    const { waitingMin, waitingMax, waitMsMax } = this.#limits
    const inTime = Math.min(waitingMax, Math.max(waitingMin, this.#itemsPerMs * waitMsMax))
    return this.#closed || this.#waiting.length + count > Math.max(count, inTime)
  }

  submit(item: In): Promise<Out> {
    if (this.isFull()) return Promise.reject(new ApiError('overloaded'))
    return this.#enqueue(item)
  }

  /** All or none are let in; each is answered by itself. */
  submitAll(items: readonly In[]): Promise<PromiseSettledResult<Out>[]> {
    if (this.isFull(items.length)) return Promise.reject(new ApiError('overloaded'))
    return Promise.allSettled(items.map((item) => this.#enqueue(item)))
  }

  /** Fails everyone who waits: what stopped the writer would only stop them later. */
  rejectWaiting(reason: unknown): void {
    for (const waiter of this.#waiting.splice(0)) waiter.reject(reason)
  }

  #enqueue(item: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#writer ??= this.#drain()
    })
  }

  async #drain(): Promise<void> {
    // Let every request that arrived in this turn of the event loop join the first batch.
    await new Promise(setImmediate)
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#limits.itemsPerBatchMax)
      const startedAtMs = performance.now()
      try {
        const results = await this.#commit(batch.map((waiter) => waiter.item))
        assert.equal(results.length, batch.length)
        // The assertion above: there is a result for every waiter.
        batch.forEach((waiter, index) => waiter.resolve(results[index]!))
      } catch (cause) {
        // One failed batch fails its own callers only (the commit itself isolates a bad row).
        for (const waiter of batch) waiter.reject(cause)
      }
      this.#learnSpeed(batch.length / (performance.now() - startedAtMs))
    }
    // Same turn as the emptiness check above, so a submit between the two cannot be lost.
    this.#writer = null
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
