import type { MonotonicClock } from '../../platform/clock.ts'

export type Verdict = {
  isAllowed: boolean
  limit: number
  remaining: number
  /** Until the bucket is full again. */
  resetSeconds: number
  /** Until the next token, when refused. */
  retryAfterSeconds: number
}

type Bucket = { tokens: number; filledAtMs: number }

/**
 * Token buckets by name, each with a second's worth of tokens. A bucket that is forgotten to keep
 * the bound starts full again, so the bound costs strictness, never a caller.
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
   * Takes `cost` tokens, except those the caller has already `paid`. What costs more than the bucket
   * holds passes when the bucket is full and leaves a debt, so that a large batch is slowed down but
   * never impossible.
   */
  take(name: string, { perSecond, capacity, cost, paid = 0 }: Rate & { paid?: number }): Verdict {
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

  /** For what turned out to be no reason to slow its caller down. */
  giveBack(name: string, { capacity, cost }: Rate): void {
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

export type Rate = { perSecond: number; capacity: number; cost: number }
