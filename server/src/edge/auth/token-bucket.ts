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

type Bucket = {
  tokens: number
  filledAtMs: number
  /** This node's part of the rate and the capacity. 1 unless other nodes use the bucket too. */
  share: number
  /** Tokens used and asked for since the last `collectUse`. */
  used: number
  wanted: number
  rate: { perSecond: number; capacity: number }
}

/** How much of a bucket was used since the last collection. `tokens` is what is left. */
export type BucketUse = {
  name: string
  tokens: number
  used: number
  wanted: number
  perSecond: number
  capacity: number
}

/**
 * Token buckets by name. At the limit, the oldest bucket is evicted and starts full again, so the limit can
 * let through too much but never refuses a caller wrongly.
 */
export class TokenBuckets {
  readonly #buckets = new Map<string, Bucket>()
  /** The buckets used since the last `collectUse`. Null if their use isn't collected. */
  #used: Set<string> | null
  readonly #clock: MonotonicClock
  readonly #bucketsMax: number

  constructor({
    clock,
    bucketsMax,
    collectsUse = false,
  }: {
    clock: MonotonicClock
    bucketsMax: number
    collectsUse?: boolean
  }) {
    this.#used = collectsUse ? new Set() : null
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
    const { share } = bucket
    const required = Math.min(cost, capacity * share)
    const isAllowed = bucket.tokens + paid >= required
    if (isAllowed) bucket.tokens -= cost - paid
    this.#note(name, bucket, { isAllowed, wanted: cost - paid })
    return {
      isAllowed,
      limit: capacity,
      remaining: Math.max(0, Math.floor(bucket.tokens)),
      // At the full rate, because a share changes every second.
      resetSeconds: Math.ceil((capacity * share - bucket.tokens) / perSecond),
      retryAfterSeconds: Math.max(1, Math.ceil((required - bucket.tokens) / perSecond)),
    }
  }

  #note(
    name: string,
    bucket: Bucket,
    { isAllowed, wanted }: { isAllowed: boolean; wanted: number },
  ): void {
    if (!this.#used) return
    this.#used.add(name)
    bucket.wanted += wanted
    if (isAllowed) bucket.used += wanted
  }

  /** What was used since the last call. */
  collectUse(): BucketUse[] {
    const uses: BucketUse[] = []
    for (const name of this.#used ?? []) {
      const bucket = this.#buckets.get(name)
      if (!bucket) continue
      const { tokens, used, wanted, rate } = bucket
      uses.push({ name, tokens, used, wanted, ...rate })
      Object.assign(bucket, { used: 0, wanted: 0 })
    }
    this.#used?.clear()
    return uses
  }

  /**
   * Sets this node's share of a bucket, and its tokens as of the last `collectUse`. Null if no other node uses
   * the bucket.
   */
  share(name: string, shared: { share: number; tokens: number } | null): void {
    const bucket = this.#buckets.get(name)
    if (!bucket) return
    bucket.share = shared?.share ?? 1
    if (!shared) return
    bucket.tokens = shared.tokens - bucket.used
    bucket.filledAtMs = this.#clock()
  }

  /** Refunds tokens taken for a request that shouldn't count. */
  refund(name: string, { capacity, cost }: Rate): void {
    const bucket = this.#buckets.get(name)
    if (!bucket) return
    bucket.tokens = Math.min(capacity, bucket.tokens + cost)
    bucket.used -= cost
  }

  #fill(name: string, perSecond: number, capacity: number): Bucket {
    const nowMs = this.#clock()
    const known = this.#buckets.get(name)
    if (known) {
      const elapsedSeconds = (nowMs - known.filledAtMs) / 1_000
      const { share } = known
      known.tokens = Math.min(capacity * share, known.tokens + elapsedSeconds * perSecond * share)
      known.filledAtMs = nowMs
      known.rate = { perSecond, capacity }
      return known
    }
    if (this.#buckets.size >= this.#bucketsMax) {
      const [oldest] = this.#buckets.keys()
      if (oldest !== undefined) this.#buckets.delete(oldest)
    }
    const rate = { perSecond, capacity }
    const fresh = { tokens: capacity, filledAtMs: nowMs, share: 1, used: 0, wanted: 0, rate }
    this.#buckets.set(name, fresh)
    return fresh
  }
}

type Rate = { perSecond: number; capacity: number; cost: number }
