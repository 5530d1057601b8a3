import { hash, randomBytes } from 'node:crypto'
import type { MonotonicClock } from '../../platform/clock.ts'

/** So many tokens at once, then so many a second. */
export type SlotRate = { perSecond: number; capacity: number }

const SLOTS = 65_536
const SECRET_BYTES = 16

/**
 * Token buckets of one rate in a fixed number of slots, 512 KiB in all. A name has its slot by a hash
 * with a secret of the process: nothing is ever forgotten, so no flood of other names gives anybody a
 * full bucket again, and nobody can choose a name that falls on somebody else's slot. The price is
 * that a name shares its slot with one other in 65,536: it may be refused for what that one did, and
 * is never allowed more.
 *
 * A slot holds the time when its bucket is full again, on a clock that started at zero or later.
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

  /** Zero when a token was taken, else the time until there is one. */
  take(name: string): number {
    const nowMs = this.#clock()
    const slot = this.#slotOf(name)
    const fullAtMs = Math.max(nowMs, this.#fullAtMs[slot] ?? 0)
    const waitMs = Math.max(0, fullAtMs + this.#tokenMs - nowMs - this.#capacityMs)
    this.#fullAtMs[slot] = waitMs > 0 ? fullAtMs : fullAtMs + this.#tokenMs
    return waitMs
  }

  /** Of one that was taken. */
  giveBack(name: string): void {
    const slot = this.#slotOf(name)
    this.#fullAtMs[slot] = (this.#fullAtMs[slot] ?? 0) - this.#tokenMs
  }

  #slotOf(name: string): number {
    return hash('sha256', `${this.#secret} ${name}`, 'buffer').readUInt32BE() % SLOTS
  }
}
