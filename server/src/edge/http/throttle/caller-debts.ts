import type { MonotonicClock } from '../../../platform/time/clock.ts'

export type DebtRate = {
  /** How much a caller can use per second without a pause. */
  perSecond: number
  /** How much all callers can use per second. Beyond that, each caller gets only `perSecondInFlood`. */
  nodePerSecond: number
  perSecondInFlood: number
  pauseMsMax: number
}

/** A caller can use a second's worth immediately. */
const BURST_MS = 1_000
const SECOND_MS = 1_000
/** A node counts as flooded for this long after a flood. */
const NODE_DEBT_MS_MAX = 1_000
const CALLERS_MAX = 10_000

/**
 * What callers have used beyond their rate, as the time until it is paid off. Each caller has its own rate, so
 * one that calls now and then never pauses. If many callers exceed the node's rate together, the rate per
 * caller is lower, so that a flood from many callers is slowed down too.
 */
export class CallerDebts {
  readonly #rate: DebtRate
  readonly #clock: MonotonicClock
  /** When each caller's debt is paid off, at its rate. The least recent is first. */
  readonly #paidOffAtMs = new Map<string, number>()
  #nodePaidOffAtMs = 0

  constructor(rate: DebtRate, clock: MonotonicClock) {
    this.#rate = rate
    this.#clock = clock
  }

  /** Returns how long the caller must pause. */
  charge(caller: string, amount: number): number {
    const { perSecond, nodePerSecond, perSecondInFlood, pauseMsMax } = this.#rate
    const nowMs = this.#clock()
    const next = (paidOffAtMs: number, rate: number, debtMsMax: number): number => {
      const owedMs = Math.max(paidOffAtMs, nowMs) + (amount * SECOND_MS) / rate
      return Math.min(owedMs, nowMs + BURST_MS + debtMsMax)
    }
    this.#nodePaidOffAtMs = next(this.#nodePaidOffAtMs, nodePerSecond, NODE_DEBT_MS_MAX)
    const isFlooded = this.#nodePaidOffAtMs - nowMs > BURST_MS
    const rate = isFlooded ? perSecondInFlood : perSecond
    const paidOffAtMs = next(this.#paidOffAtMs.get(caller) ?? 0, rate, pauseMsMax)
    this.#remember(caller, paidOffAtMs)
    // Timers count whole milliseconds.
    return Math.max(0, Math.floor(paidOffAtMs - nowMs - BURST_MS))
  }

  #remember(caller: string, paidOffAtMs: number): void {
    this.#paidOffAtMs.delete(caller)
    this.#paidOffAtMs.set(caller, paidOffAtMs)
    if (this.#paidOffAtMs.size <= CALLERS_MAX) return
    const [oldest] = this.#paidOffAtMs.keys()
    if (oldest !== undefined) this.#paidOffAtMs.delete(oldest)
  }
}
