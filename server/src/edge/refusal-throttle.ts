import type { EventEmitter } from 'node:events'
import { type MonotonicClock, monotonicClock } from '../platform/clock.ts'

/** A caller gets a second's worth of refusals immediately. */
const BURST_MS = 1_000
const DELAY_MS_MAX = 1_000
/** 100 refusals per second: more than a faulty client causes, and 3% of the main thread. */
const INTERVAL_MS = 10
/** 500 per second on the node. Beyond that, each caller gets only 10. */
const NODE_INTERVAL_MS = 2
const FLOODED_INTERVAL_MS = 100
const CALLERS_MAX = 10_000

/**
 * Delays the answers to callers that are refused many times per second. A refusal takes about as much
 * of the main thread as an event, and a flood sends its next request when the last one is answered: 100
 * connections that were answered immediately made events wait twenty times as long.
 *
 * Each caller has its own rate, so one that is refused now and then is answered immediately. If many
 * callers are refused at once, the rate per caller is lower, so that a flood from many networks is
 * slowed down too. At most `heldMax` refusals wait; further ones are answered immediately.
 */
export class RefusalThrottle {
  readonly #heldMax: number
  readonly #clock: MonotonicClock
  /** When each caller's refusals so far are paid off, at its rate. The least recent caller is first. */
  readonly #paidOffAtMs = new Map<string, number>()
  #nodePaidOffAtMs = 0
  #held = 0

  /** Tests that stop the app's clock don't stop this one, because the timers run on. */
  constructor({ heldMax, clock = monotonicClock }: { heldMax: number; clock?: MonotonicClock }) {
    this.#heldMax = heldMax
    this.#clock = clock
  }

  /** Refusals that are waiting. */
  get held(): number {
    return this.#held
  }

  /**
   * Calls `answer` once: now, after the caller's delay, or when `response` closes because the client
   * disconnected. Returns a function that ends the delay.
   */
  hold(caller: string, response: EventEmitter, answer: () => void): () => void {
    const delayMs = this.#delayMs(caller)
    if (delayMs === 0 || this.#held >= this.#heldMax) {
      answer()
      return () => {}
    }
    this.#held += 1
    let isHeld = true
    const release = () => {
      if (!isHeld) return
      isHeld = false
      clearTimeout(timer)
      response.off('close', release)
      this.#held -= 1
      answer()
    }
    const timer = setTimeout(release, delayMs)
    response.once('close', release)
    return release
  }

  #delayMs(caller: string): number {
    const nowMs = this.#clock()
    this.#nodePaidOffAtMs = next(this.#nodePaidOffAtMs, nowMs, NODE_INTERVAL_MS)
    const isFlooded = this.#nodePaidOffAtMs - nowMs > BURST_MS
    const intervalMs = isFlooded ? FLOODED_INTERVAL_MS : INTERVAL_MS
    const paidOffAtMs = next(this.#paidOffAtMs.get(caller) ?? 0, nowMs, intervalMs)
    this.#remember(caller, paidOffAtMs)
    return Math.max(0, paidOffAtMs - nowMs - BURST_MS)
  }

  #remember(caller: string, paidOffAtMs: number): void {
    this.#paidOffAtMs.delete(caller)
    this.#paidOffAtMs.set(caller, paidOffAtMs)
    if (this.#paidOffAtMs.size <= CALLERS_MAX) return
    const [oldest] = this.#paidOffAtMs.keys()
    if (oldest !== undefined) this.#paidOffAtMs.delete(oldest)
  }
}

function next(paidOffAtMs: number, nowMs: number, intervalMs: number): number {
  return Math.min(Math.max(paidOffAtMs, nowMs) + intervalMs, nowMs + BURST_MS + DELAY_MS_MAX)
}
