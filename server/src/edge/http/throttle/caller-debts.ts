import type { MonotonicClock } from '../../../platform/time/clock.ts'

export type DebtRate = {
  /** How much a caller can use per second without a pause. */
  perSecond: number
  /** How much all callers can use per second. Beyond that, each caller gets only `perSecondInFlood`. */
  nodePerSecond: number
  perSecondInFlood: number
  /** The least that a caller gets while many callers together still exceed the node's rate. */
  perSecondMin: number
  pauseMsMax: number
}

/** A caller can use a second's worth immediately. */
const BURST_MS = 1_000
const SECOND_MS = 1_000
/** A node counts as flooded for this long after a flood. */
const NODE_DEBT_MS_MAX = 1_000
const CALLERS_MAX = 10_000
/** How often the rate in a flood is adjusted. */
const ADJUST_MS = 250
const GROWTH_PER_SECOND = 1.2
/** In a flood, a caller can use this long's worth immediately, but at most `perSecondInFlood`. */
const FLOOD_BURST_MS_MAX = 20_000

/**
 * What callers have used beyond their rate, as the time until it is paid off. Each caller has its own rate, so
 * one that calls now and then never pauses. If many callers exceed the node's rate together, the rate per
 * caller is lower, and shrinks until they no longer do, so that a flood from any number of callers is slowed
 * down. Even then, a caller that has used little gets some responses immediately.
 */
export class CallerDebts {
  readonly #rate: DebtRate
  readonly #clock: MonotonicClock
  /** When each caller's debt is paid off, at its rate. The least recent is first. */
  readonly #paidOffAtMs = new Map<string, number>()
  #nodePaidOffAtMs = 0
  /** What each caller gets per second in a flood. */
  #rateInFlood: number
  #adjustedAtMs: number
  /** How much all callers have used since then. */
  #used = 0

  constructor(rate: DebtRate, clock: MonotonicClock) {
    this.#rate = rate
    this.#clock = clock
    this.#rateInFlood = rate.perSecondInFlood
    this.#adjustedAtMs = clock()
  }

  /** Returns how long the caller must pause. */
  charge(caller: string, amount: number): number {
    const { perSecond, perSecondInFlood, pauseMsMax } = this.#rate
    const nowMs = this.#clock()
    this.#adjust(nowMs)
    const isLow = this.#rateInFlood < perSecondInFlood
    const isFlooded = isLow || this.#nodePaidOffAtMs - nowMs > BURST_MS
    const rate = isFlooded ? this.#rateInFlood : perSecond
    const floodBurstMs = Math.min(FLOOD_BURST_MS_MAX, (BURST_MS * perSecondInFlood) / rate)
    const burstMs = isFlooded ? floodBurstMs : BURST_MS
    const knownMs = Math.max(this.#paidOffAtMs.get(caller) ?? 0, nowMs)
    const owedMs = knownMs + (amount * SECOND_MS) / rate
    const paidOffAtMs = Math.min(owedMs, nowMs + burstMs + pauseMsMax)
    this.#remember(caller, paidOffAtMs)
    // What is beyond the longest pause doesn't count, so that one caller alone can't make a node count as flooded.
    const counted = (Math.max(0, paidOffAtMs - knownMs) * rate) / SECOND_MS
    this.#chargeNode(Math.min(amount, counted), nowMs)
    // Timers count whole milliseconds.
    return Math.max(0, Math.floor(paidOffAtMs - nowMs - burstMs))
  }

  #chargeNode(amount: number, nowMs: number): void {
    const owedMs = (amount * SECOND_MS) / this.#rate.nodePerSecond
    const paidOffAtMs = Math.max(this.#nodePaidOffAtMs, nowMs) + owedMs
    this.#nodePaidOffAtMs = Math.min(paidOffAtMs, nowMs + BURST_MS + NODE_DEBT_MS_MAX)
    this.#used += amount
  }

  /** Lowers the rate in a flood in proportion to how much all callers exceed the node's rate. */
  #adjust(nowMs: number): void {
    const { nodePerSecond, perSecondInFlood, perSecondMin } = this.#rate
    const elapsedMs = nowMs - this.#adjustedAtMs
    if (elapsedMs < ADJUST_MS) return
    const excess = (this.#used * SECOND_MS) / elapsedMs / nodePerSecond
    const change = excess > 1 ? 1 / excess : GROWTH_PER_SECOND ** (elapsedMs / SECOND_MS)
    const rate = Math.max(perSecondMin, this.#rateInFlood * change)
    this.#rateInFlood = Math.min(perSecondInFlood, rate)
    this.#adjustedAtMs = nowMs
    this.#used = 0
  }

  #remember(caller: string, paidOffAtMs: number): void {
    this.#paidOffAtMs.delete(caller)
    this.#paidOffAtMs.set(caller, paidOffAtMs)
    if (this.#paidOffAtMs.size <= CALLERS_MAX) return
    const [oldest] = this.#paidOffAtMs.keys()
    if (oldest !== undefined) this.#paidOffAtMs.delete(oldest)
  }
}
