import { hash, randomBytes } from 'node:crypto'
import type { MonotonicClock } from '../../platform/time/clock.ts'

/** `capacity` tokens at once, then `perSecond`. */
export type SlotRate = { perSecond: number; capacity: number }

const SLOTS = 65_536
const SECRET_BYTES = 16

/**
 * Token buckets with one rate in a fixed number of slots, 512 KiB in total. A hash keyed with a per-process
 * secret maps each name to a slot. No bucket is ever evicted, so a flood of other names can't refill one, and
 * an attacker can't choose a name that shares a slot with a victim's. In return, two names share a slot with
 * a chance of one in 65,536. One can then be refused because of the other, but never gets more than its rate.
 *
 * A slot stores the time when its bucket is full again, on a clock that starts at zero or later.
 */
export class TokenSlots {
  readonly #fullAtMs = new Float64Array(SLOTS)
  readonly #secret = randomBytes(SECRET_BYTES).toString('hex')
  readonly #clock: MonotonicClock
  readonly #tokenMs: number
  readonly #capacityMs: number

  constructor(clock: MonotonicClock, { perSecond, capacity }: SlotRate) {
    this.#clock = clock
    this.#tokenMs = Math.round(1_000 / perSecond)
    this.#capacityMs = capacity * this.#tokenMs
  }

  /** Returns zero if it took a token, or else the time until one is available. */
  take(name: string): number {
    const nowMs = this.#clock()
    const slot = this.#slotOf(name)
    const fullAtMs = Math.max(nowMs, this.#fullAtMs[slot] ?? 0)
    const waitMs = Math.max(0, fullAtMs + this.#tokenMs - nowMs - this.#capacityMs)
    this.#fullAtMs[slot] = waitMs > 0 ? fullAtMs : fullAtMs + this.#tokenMs
    return waitMs
  }

  /** Refunds a token that was taken. */
  refund(name: string): void {
    const slot = this.#slotOf(name)
    this.#fullAtMs[slot] = (this.#fullAtMs[slot] ?? 0) - this.#tokenMs
  }

  #slotOf(name: string): number {
    return hash('sha256', `${this.#secret} ${name}`, 'buffer').readUInt32BE() % SLOTS
  }
}
