import { ApiError } from '../../errors.ts'
import type { MonotonicClock } from '../../platform/clock.ts'
import { networkOf } from './client-address.ts'
import { TokenBuckets } from './token-bucket.ts'

const NETWORKS_MAX = 10_000
/** Generous to a client with a stale credential, tight for a scanner. */
const FAILURES = { perSecond: 20, capacity: 200, cost: 1 } as const
/** Fewer than the connections for keys and sessions, which known ones use as well. */
const LOOKUPS_MAX = 4
/** After a restart all credentials are unknown; a lookup takes a millisecond or two. */
const WAITING_MAX = 1_000
/** A queue that takes longer stands still, because the database does. */
const WAIT_MS_MAX = 500

/**
 * Throttles credentials that are not known to be good: per network by their failures, and per node
 * by how many are looked up at once. Known credentials do not pass through here, so a flood of
 * unknown ones does not stop them.
 */
export class UnknownCredentials {
  readonly #failures: TokenBuckets
  readonly #hasRateLimits: boolean
  readonly #waiting = new Set<() => void>()
  #lookups = 0

  constructor({ clock, hasRateLimits }: { clock: MonotonicClock; hasRateLimits: boolean }) {
    this.#failures = new TokenBuckets({ clock, bucketsMax: NETWORKS_MAX })
    this.#hasRateLimits = hasRateLimits
  }

  /** Refuses before `read` starts. The caller counts the failure if the credential turns out bad. */
  async lookUp<T>(address: string, read: () => Promise<T>): Promise<T> {
    // Held during the lookup, so that many at once cannot pass on the last token.
    this.countFailure(address)
    try {
      await this.#enter()
      try {
        return await read()
      } finally {
        this.#leave()
      }
    } finally {
      this.#failures.giveBack(networkOf(address), FAILURES)
    }
  }

  /** Throws when the network has used up its failures. */
  countFailure(address: string, cause?: unknown): void {
    if (!this.#hasRateLimits) return
    const verdict = this.#failures.take(networkOf(address), FAILURES)
    if (verdict.isAllowed) return
    throw new ApiError('rate_limited', {
      message: 'Too many failed authentications from this address.',
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
      throw new ApiError('rate_limited', { message: 'Too many authentications at once.' })
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    const timer = setTimeout(() => {
      this.#waiting.delete(resolve)
      reject(new ApiError('unavailable'))
    }, WAIT_MS_MAX)
    try {
      await promise
    } finally {
      clearTimeout(timer)
    }
  }

  /** The next one in line takes over the place. */
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
