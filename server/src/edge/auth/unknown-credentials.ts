import { ApiError } from '../../errors.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import { startDeadline } from '../../platform/time/deadline.ts'
import { networkOf } from './client-address.ts'
import { TokenBuckets } from './token-bucket.ts'

const NETWORKS_MAX = 10_000
/** Generous for a client with a stale credential, strict for a scanner. */
const FAILURES = { perSecond: 20, capacity: 200, cost: 1 } as const
/** Fewer than the connections for keys and sessions, because known credentials use those too. */
const LOOKUPS_MAX = 4
/** After a restart, all credentials are unknown. A lookup takes one or two milliseconds. */
const WAITING_MAX = 1_000
/** A longer wait means that the database is stuck. */
const WAIT_MS_MAX = 500

/**
 * Throttles credentials that this node hasn't verified recently: failures per network, and concurrent lookups
 * per node. Verified credentials skip this, so a flood of unknown ones doesn't block them.
 */
export class UnknownCredentials {
  readonly #failures: TokenBuckets
  readonly #hasRateLimits: boolean
  readonly #waitMsMax: number
  readonly #waiting = new Set<() => void>()
  #lookups = 0
  #finished = 0

  constructor({
    clock,
    hasRateLimits,
    timeoutFactor,
  }: {
    clock: MonotonicClock
    hasRateLimits: boolean
    /** Multiplies the timeouts. */
    timeoutFactor: number
  }) {
    this.#waitMsMax = WAIT_MS_MAX * timeoutFactor
    this.#failures = new TokenBuckets({ clock, bucketsMax: NETWORKS_MAX })
    this.#hasRateLimits = hasRateLimits
  }

  /** Can refuse before it calls `read`. If the credential is invalid, the caller counts the failure. */
  async lookUp<T>(address: string, read: () => Promise<T>): Promise<T> {
    // Take the token for the duration of the lookup, so that concurrent lookups can't share the last one.
    this.countFailure(address)
    try {
      await this.#enter()
      try {
        const found = await read()
        this.#finished += 1
        return found
      } finally {
        this.#leave()
      }
    } finally {
      this.#failures.refund(networkOf(address), FAILURES)
    }
  }

  /** Throws if the network has used up its allowed failures. */
  countFailure(address: string, cause?: unknown): void {
    if (!this.#hasRateLimits) return
    const verdict = this.#failures.take(networkOf(address), FAILURES)
    if (verdict.isAllowed) return
    throw new ApiError('rate_limited', {
      message:
        'Too many failed authentications from this address. Retry after the delay in the Retry-After header.',
      retryAfterSeconds: verdict.retryAfterSeconds,
      cause,
    })
  }

  async #enter(): Promise<void> {
    if (this.#lookups < LOOKUPS_MAX) {
      this.#lookups += 1
      return
    }
    if (this.#waiting.size >= WAITING_MAX) {
      throw new ApiError('rate_limited', {
        message:
          'Too many authentications at once. Retry after the delay in the Retry-After header.',
      })
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    const finished = this.#finished
    using _deadline = startDeadline({ timeoutMs: this.#waitMsMax }, () => {
      this.#waiting.delete(resolve)
      // In a flood, others had their turn. Otherwise, the database doesn't respond.
      reject(new ApiError(this.#finished > finished ? 'overloaded' : 'unavailable'))
    })
    await promise
  }

  /** Hands the slot to the next lookup in the queue. */
  #leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#lookups -= 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
