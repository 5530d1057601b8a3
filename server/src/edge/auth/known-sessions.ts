import { hash } from 'node:crypto'
import type { MonotonicClock } from '../../platform/clock.ts'
import { SESSION_IDLE_MS } from '../../tenancy/session-store.ts'

const SESSIONS_MAX = 10_000

/**
 * The hashes of session tokens that were good a short while ago. It says nothing about access, which
 * is read for every request: only that the read is not a guess.
 */
export class KnownSessions {
  readonly #seenAtMs = new Map<string, number>()
  readonly #clock: MonotonicClock

  constructor(clock: MonotonicClock) {
    this.#clock = clock
  }

  has(token: string): boolean {
    const seenAtMs = this.#seenAtMs.get(nameOf(token))
    return seenAtMs !== undefined && this.#clock() - seenAtMs < SESSION_IDLE_MS
  }

  note(token: string, isGood: boolean): void {
    const name = nameOf(token)
    // The map is in the order of use: the first one is the one to forget.
    this.#seenAtMs.delete(name)
    if (!isGood) return
    this.#seenAtMs.set(name, this.#clock())
    if (this.#seenAtMs.size <= SESSIONS_MAX) return
    const [oldest] = this.#seenAtMs.keys()
    if (oldest !== undefined) this.#seenAtMs.delete(oldest)
  }
}

function nameOf(token: string): string {
  return hash('sha256', token, 'base64')
}
