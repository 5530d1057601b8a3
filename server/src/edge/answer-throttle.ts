import type { EventEmitter } from 'node:events'
import { type MonotonicClock, monotonicClock } from '../platform/clock.ts'

export type AnswerRate = {
  /** Answers per second that a caller gets without a delay. */
  perSecond: number
  /** Answers per second on the node. Beyond that, each caller gets only `perSecondInFlood`. */
  nodePerSecond: number
  perSecondInFlood: number
}

/** More refusals than a faulty client causes, and 3% of the main thread. */
export const REFUSAL_RATE: AnswerRate = { perSecond: 100, nodePerSecond: 500, perSecondInFlood: 10 }
/** Ten page loads per second for the browsers behind one address: a page has about 30 files. */
export const ANONYMOUS_RATE: AnswerRate = {
  perSecond: 300,
  nodePerSecond: 1_000,
  perSecondInFlood: 30,
}
/** Three page loads per second of one member: a page sends fewer than 30 requests. */
export const MEMBER_RATE: AnswerRate = {
  perSecond: 100,
  nodePerSecond: 1_000,
  perSecondInFlood: 30,
}
/** Enough for a hundred members who work at the same time, and a tenth of the main thread. */
export const COMPANY_RATE: AnswerRate = {
  perSecond: 300,
  nodePerSecond: 1_000,
  perSecondInFlood: 100,
}

/** A caller gets a second's worth of answers immediately. */
const BURST_MS = 1_000
const DELAY_MS_MAX = 1_000
const SECOND_MS = 1_000
const CALLERS_MAX = 10_000

/**
 * Delays the answers to callers that get many of one kind per second. A refusal or a page takes about
 * as much of the main thread as an event, and a flood sends its next request when the last one is
 * answered: 100 connections that were answered immediately made events wait twenty times as long.
 *
 * Each caller has its own rate, so one that calls now and then is answered immediately. If many callers
 * exceed the node's rate together, the rate per caller is lower, so that a flood from many networks is
 * slowed down too. At most `heldMax` answers wait; further ones are sent immediately.
 */
export class AnswerThrottle implements Disposable {
  readonly #rate: AnswerRate
  readonly #heldMax: number
  readonly #clock: MonotonicClock
  /** When each caller's answers so far are paid off, at its rate. The least recent caller is first. */
  readonly #paidOffAtMs = new Map<string, number>()
  #nodePaidOffAtMs = 0
  /** The functions that end the delays. */
  readonly #held = new Set<() => void>()
  #isDisposed = false

  /** Tests that stop the app's clock don't stop this one, because the timers run on. */
  constructor({
    rate,
    heldMax,
    clock = monotonicClock,
  }: {
    rate: AnswerRate
    heldMax: number
    clock?: MonotonicClock
  }) {
    this.#rate = rate
    this.#heldMax = heldMax
    this.#clock = clock
  }

  /** Answers that are waiting. */
  get held(): number {
    return this.#held.size
  }

  /**
   * Calls `answer` once: now, after the caller's delay, or when `response` closes because the client
   * disconnected. Returns a function that ends the delay.
   */
  hold(caller: string, response: EventEmitter, answer: () => void): () => void {
    const delayMs = this.#delayMs(caller)
    if (delayMs === 0 || this.#held.size >= this.#heldMax || this.#isDisposed) {
      answer()
      return () => {}
    }
    const release = () => {
      if (!this.#held.delete(release)) return
      clearTimeout(timer)
      response.off('close', release)
      answer()
    }
    this.#held.add(release)
    const timer = setTimeout(release, delayMs)
    response.once('close', release)
    return release
  }

  /** Sends all answers that wait, and delays none from now on. */
  [Symbol.dispose](): void {
    this.#isDisposed = true
    for (const release of this.#held) release()
  }

  #delayMs(caller: string): number {
    const { perSecond, nodePerSecond, perSecondInFlood } = this.#rate
    const nowMs = this.#clock()
    this.#nodePaidOffAtMs = next(this.#nodePaidOffAtMs, nowMs, nodePerSecond)
    const isFlooded = this.#nodePaidOffAtMs - nowMs > BURST_MS
    const rate = isFlooded ? perSecondInFlood : perSecond
    const paidOffAtMs = next(this.#paidOffAtMs.get(caller) ?? 0, nowMs, rate)
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

function next(paidOffAtMs: number, nowMs: number, perSecond: number): number {
  const owedMs = Math.max(paidOffAtMs, nowMs) + SECOND_MS / perSecond
  return Math.min(owedMs, nowMs + BURST_MS + DELAY_MS_MAX)
}
