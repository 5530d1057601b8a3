import type { MonotonicClock } from '../../platform/time/clock.ts'

export type RateVerdict = {
  isAllowed: boolean
  limit: number
  remaining: number
  /** Time until the bucket is full again. */
  resetSeconds: number
  /** If refused, the time until there are enough tokens. */
  retryAfterSeconds: number
}

type Bucket = { tokens: number; filledAtMs: number }

/**
 * Token buckets by name. At the limit, the oldest bucket is evicted and starts full again, so the limit can
 * let through too much but never refuses a caller wrongly.
 */
export class TokenBuckets {
  readonly #buckets = new Map<string, Bucket>()
  readonly #clock: MonotonicClock
  readonly #bucketsMax: number

  constructor({ clock, bucketsMax }: { clock: MonotonicClock; bucketsMax: number }) {
    this.#clock = clock
    this.#bucketsMax = bucketsMax
  }

  /**
   * Takes `cost` tokens, minus those the caller has already `paid`. A cost above the capacity passes if the
   * bucket is full, and leaves a debt. So a large batch is slowed down, but always possible.
   */
  take(
    name: string,
    { perSecond, capacity, cost, paid = 0 }: Rate & { paid?: number },
  ): RateVerdict {
    const bucket = this.#fill(name, perSecond, capacity)
    const isAllowed = bucket.tokens + paid >= Math.min(cost, capacity)
    if (isAllowed) bucket.tokens -= cost - paid
    const missing = Math.min(cost, capacity) - bucket.tokens
    return {
      isAllowed,
      limit: capacity,
      remaining: Math.max(0, Math.floor(bucket.tokens)),
      resetSeconds: Math.ceil((capacity - bucket.tokens) / perSecond),
      retryAfterSeconds: Math.max(1, Math.ceil(missing / perSecond)),
    }
  }

  /** Refunds tokens taken for a request that shouldn't count. */
  refund(name: string, { capacity, cost }: Rate): void {
    const bucket = this.#buckets.get(name)
    if (bucket) bucket.tokens = Math.min(capacity, bucket.tokens + cost)
  }

  #fill(name: string, perSecond: number, capacity: number): Bucket {
    const nowMs = this.#clock()
    const known = this.#buckets.get(name)
    if (known) {
      const elapsedSeconds = (nowMs - known.filledAtMs) / 1_000
      known.tokens = Math.min(capacity, known.tokens + elapsedSeconds * perSecond)
      known.filledAtMs = nowMs
      return known
    }
    if (this.#buckets.size >= this.#bucketsMax) {
      const [oldest] = this.#buckets.keys()
      if (oldest !== undefined) this.#buckets.delete(oldest)
    }
    const fresh = { tokens: capacity, filledAtMs: nowMs }
    this.#buckets.set(name, fresh)
    return fresh
  }
}

type Rate = { perSecond: number; capacity: number; cost: number }
