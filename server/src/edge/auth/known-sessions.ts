import { hash } from 'node:crypto'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import { SESSION_IDLE_MS } from '../../tenancy/sign-in/session-store.ts'

const SESSIONS_MAX = 10_000

/**
 * Hashes of session tokens that were valid recently. They grant no access, which is read for every request.
 * They only show that a token isn't a guess, so its read isn't throttled.
 */
export class KnownSessions {
  readonly #seenAtMs = new Map<string, number>()
  readonly #clock: MonotonicClock

  constructor(clock: MonotonicClock) {
    this.#clock = clock
  }

  has(token: string): boolean {
    const seenAtMs = this.#seenAtMs.get(hashOf(token))
    return seenAtMs !== undefined && this.#clock() - seenAtMs < SESSION_IDLE_MS
  }

  note(token: string, isGood: boolean): void {
    const name = hashOf(token)
    // The map is ordered by last use, so the first entry is the one to evict.
    this.#seenAtMs.delete(name)
    if (!isGood) return
    this.#seenAtMs.set(name, this.#clock())
    if (this.#seenAtMs.size <= SESSIONS_MAX) return
    const [oldest] = this.#seenAtMs.keys()
    if (oldest !== undefined) this.#seenAtMs.delete(oldest)
  }
}

function hashOf(token: string): string {
  return hash('sha256', token, 'base64')
}
