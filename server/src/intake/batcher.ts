import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../errors.ts'
import { FairQueue } from './fair-queue.ts'

type Waiter<In, Out> = {
  item: In
  resolve: (value: Out) => void
  reject: (reason: unknown) => void
  /** Of the monotonic clock. */
  sinceMs: number
}

/** The callers of a batch, and what commits it. */
type Group<In, Out> = { waiters: Waiter<In, Out>[]; items: In[]; commit: () => Promise<Out[]> }

export type BatcherLimits = {
  itemsPerBatchMax: number
  /**
   * The queue always accepts this many items, however slow the batches are: a cold start is not an overload.
   */
  waitingMin: number
  /** The queue never accepts more items than this, however fast the batches are. */
  waitingMax: number
  waitMsMax: number
  /** Extra time to wait for more items, beyond the event-loop turns. Called before each batch. */
  lingerMs?: () => number
}

/** Prepares the next batch while another is in flight, and returns its commit. */
type PrepareBatch<In, Out> = (items: In[]) => () => Promise<Out[]>

/** Byte sizes and limits, because a few large items can take as much memory as many small ones. */
export type BatcherWeights<In> = {
  bytesOf: (item: In) => number
  bytesPerBatchMax: number
  /** The owner of an item. Items of one owner keep their order. */
  ownerOf: (item: In) => string
  /** Limits an owner's bytes per batch, so that an owner with large items doesn't delay the others. */
  bytesPerOwnerMax: (owner: string) => number
  waitingBytesMax: number
}

const NO_WEIGHT: BatcherWeights<unknown> = {
  bytesOf: () => 0,
  bytesPerBatchMax: 0,
  ownerOf: () => '',
  bytesPerOwnerMax: () => 0,
  waitingBytesMax: 0,
}

/** The weight of the newest batch in the moving average of the throughput. */
const NEWEST_SHARE = 0.2
const TICKS_MAX = 20

/**
 * Group commit. Callers submit one item and wait; a single writer commits all waiting items in one
 * transaction. While a commit is in flight the next batch fills, so the batch size follows the load: an
 * idle service commits single events immediately, and a busy one amortizes the cost of a commit.
 *
 * A caller gets its result only after the commit that contains its item has returned. If the recent
 * throughput means that a caller would wait longer than `waitMsMax`, it is rejected immediately: a short
 * queue keeps latency low for the others, and a rejected caller can try another node. Owners take turns, so
 * an owner that sends a lot waits, or is rejected, before it delays the others.
 */
export class Batcher<In, Out> implements AsyncDisposable {
  readonly #commit: (items: In[]) => Promise<Out[]>
  readonly #limits: BatcherLimits
  readonly #weights: BatcherWeights<In>
  readonly #queue: FairQueue<Waiter<In, Out>>
  readonly #prepare: PrepareBatch<In, Out>
  #isCommitting = false
  /** A full batch that waits while another is in flight. It is committed next. */
  #ahead: Group<In, Out> | null = null
  #writer: Promise<void> | null = null
  #closed = false
  /** Infinite until the first batch has been measured. */
  #itemsPerMs = Number.POSITIVE_INFINITY

  constructor(
    commit: (items: In[]) => Promise<Out[]>,
    limits: BatcherLimits,
    weights: BatcherWeights<In> = NO_WEIGHT,
    prepare: PrepareBatch<In, Out> = (items) => () => commit(items),
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

  /** How long the oldest waiting item has waited. 0 if there is none. */
  waitedMs(): number {
    const nowMs = performance.now()
    const first = this.#ahead?.waiters ?? []
    let sinceMs = nowMs
    for (const waiter of [...first, ...this.#queue.firstItems()]) {
      sinceMs = Math.min(sinceMs, waiter.sinceMs)
    }
    return nowMs - sinceMs
  }

  get #readyCount(): number {
    return this.#ahead?.waiters.length ?? 0
  }

  /**
   * True if `count` more items of `owner` would wait too long or take too much memory. An empty queue
   * accepts any single call. An owner may not queue more bytes than remain free for the others.
   */
  isFull(owner: string, count = 1): boolean {
    const { waitingMin, waitingMax, waitMsMax } = this.#limits
    const { bytes } = this.#queue
    const isHeavy = this.#queue.bytesOf(owner) > this.#weights.waitingBytesMax - bytes
    if (this.#closed || isHeavy) return true
    const acceptedMax = Math.min(waitingMax, Math.max(waitingMin, this.#itemsPerMs * waitMsMax))
    if (this.waiting + count <= Math.max(count, acceptedMax)) return false
    return this.#readyCount + this.#queue.turnsUntil(owner, count) > acceptedMax
  }

  submit(item: In): Promise<Out> {
    if (this.isFull(this.#weights.ownerOf(item))) return Promise.reject(new ApiError('overloaded'))
    const sinceMs = performance.now()
    return new Promise((resolve, reject) => this.#enqueue({ item, resolve, reject, sinceMs }))
  }

  /** Submits items of one owner. Either all are queued or none; each has its own result. */
  submitAll(items: readonly In[]): Promise<PromiseSettledResult<Out>[]> {
    const [first] = items
    if (first === undefined) return Promise.resolve([])
    if (this.isFull(this.#weights.ownerOf(first), items.length)) {
      return Promise.reject(new ApiError('overloaded'))
    }
    const sinceMs = performance.now()
    return new Promise((resolveAll) => {
      const results: PromiseSettledResult<Out>[] = Array.from({ length: items.length })
      let left = items.length
      const settle = (index: number, result: PromiseSettledResult<Out>) => {
        results[index] = result
        left -= 1
        if (left === 0) resolveAll(results)
      }
      items.forEach((item, index) =>
        this.#enqueue({
          item,
          resolve: (value) => settle(index, { status: 'fulfilled', value }),
          reject: (reason) => settle(index, { status: 'rejected', reason }),
          sinceMs,
        }),
      )
    })
  }

  /** Rejects all waiting callers, because the fault that stopped the writer would fail their batches too. */
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
      const group = this.#ahead ?? this.#takeGroup()
      this.#ahead = null
      await this.#run(group)
    }
    // No await since the emptiness check above, so no submit can slip in between and be lost.
    this.#writer = null
  }

  async #run({ waiters, commit }: Group<In, Out>): Promise<void> {
    const startedAtMs = performance.now()
    try {
      this.#isCommitting = true
      const committing = commit()
      this.#prepareNext()
      const results = await committing
      assert.equal(results.length, waiters.length)
      // The assertion above guarantees a result for every waiter.
      waiters.forEach((waiter, index) => waiter.resolve(results[index]!))
    } catch (cause) {
      // A failed batch fails only its own callers (the commit itself isolates a bad row).
      for (const waiter of waiters) waiter.reject(cause)
    } finally {
      this.#isCommitting = false
    }
    this.#learnSpeed(waiters.length / (performance.now() - startedAtMs))
  }

  /**
   * Prepares the next batch while another is in flight, if it is full: waiting
   * longer would add nothing to it.
   */
  #prepareNext(): void {
    if (!this.#isCommitting || this.#ahead) return
    if (this.#queue.size < this.#limits.itemsPerBatchMax) return
    this.#ahead = this.#takeGroup()
    try {
      this.#ahead.commit = this.#prepare(this.#ahead.items)
    } catch {
      // The commit repeats this work and hits the same error, and there only its own callers fail.
    }
  }

  /**
   * Lets arriving requests join the batch, as long as each turn of the event loop brings more. The callers
   * of the last batch return in such a wave: without this, half of them miss the next batch, and batches
   * stay half as large permanently. An idle service waits one turn.
   */
  async #gather(): Promise<void> {
    const lingerMs = this.#limits.lingerMs?.() ?? 0
    if (lingerMs > 0) await delay(lingerMs)
    for (let turn = 0; turn < TICKS_MAX; turn += 1) {
      const before = this.#queue.size
      await new Promise(setImmediate)
      const after = this.#queue.size
      if (after === before || after >= this.#limits.itemsPerBatchMax) return
    }
  }

  #takeGroup(): Group<In, Out> {
    const { bytesPerBatchMax: bytesMax, bytesPerOwnerMax } = this.#weights
    const { itemsPerBatchMax: itemsMax } = this.#limits
    const waiters = this.#queue.take({ itemsMax, bytesMax, bytesPerOwnerMax })
    const items = waiters.map(({ item }) => item)
    return { waiters, items, commit: () => this.#commit(items) }
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
