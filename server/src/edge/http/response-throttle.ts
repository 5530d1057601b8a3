import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type MonotonicClock, monotonicClock } from '../../platform/time/clock.ts'

export type ResponseRate = {
  /** Answers per second that a caller gets without a delay. */
  perSecond: number
  /** Answers per second on the node. Beyond that, each caller gets only `perSecondInFlood`. */
  nodePerSecond: number
  perSecondInFlood: number
  /** A flood on n connections gets at most n responses per this period. */
  delayMsMax: number
}

const USUAL = { nodePerSecond: 1_000, delayMsMax: 10_000 } as const

/** More refusals than a faulty client causes, and 3% of the main thread. */
export const REFUSAL_RATE: ResponseRate = {
  ...USUAL,
  perSecond: 100,
  nodePerSecond: 500,
  perSecondInFlood: 10,
}
/** Ten page loads per second for the browsers behind one address: a page has about 30 files. */
export const PAGE_RATE: ResponseRate = { ...USUAL, perSecond: 300, perSecondInFlood: 30 }
/** Short delays: a load balancer takes a node out of service if its check takes too long. */
export const CHECK_RATE: ResponseRate = { ...PAGE_RATE, delayMsMax: 1_000 }
/** Three page loads per second of one member: a page sends fewer than 30 requests. */
export const MEMBER_RATE: ResponseRate = { ...USUAL, perSecond: 100, perSecondInFlood: 30 }
/** Enough for a hundred members who work at the same time, and a tenth of the main thread. */
export const COMPANY_RATE: ResponseRate = { ...USUAL, perSecond: 300, perSecondInFlood: 100 }

/** The delayed responses of each connection, across all throttles. */
const WAITING = new WeakMap<Socket, Set<ServerResponse>>()

/** True while a response waits because its caller gets too many. */
export function isDelayed(response: ServerResponse): boolean {
  return WAITING.get(response.req.socket)?.has(response) === true
}

/** How many responses of a throttle can wait beyond the first of each connection. */
export const PIPELINED_MAX = 1_000
/** A caller gets a second's worth of responses immediately. */
const BURST_MS = 1_000
const SECOND_MS = 1_000
const ENDED_PER_TICK = 20
/** A node counts as flooded for this long after a flood. */
const NODE_DEBT_MS_MAX = 1_000
const CALLERS_MAX = 10_000

/**
 * Delays the responses to callers that get many of one kind per second. A refusal or a page takes about
 * as much of the main thread as an event, and a flood sends its next request when the last one is
 * answered: 100 connections that were answered immediately made events wait twenty times as long.
 *
 * Each caller has its own rate, so one that calls now and then is answered immediately. If many callers
 * exceed the node's rate together, the rate per caller is lower, so that a flood from many networks is
 * slowed down too.
 *
 * One response of each connection can always wait, because the number of connections is limited. Further
 * ones, to pipelined requests, can wait while there are few. Beyond that, the connection is closed: an
 * immediate response would let a flood run at full speed.
 */
export class ResponseThrottle implements Disposable {
  readonly #rate: ResponseRate
  readonly #clock: MonotonicClock
  /** When each caller's debt for the responses so far is paid off, at its rate. The least recent is first. */
  readonly #paidOffAtMs = new Map<string, number>()
  #nodePaidOffAtMs = 0
  #pipelined = 0
  /** The functions that end the delays. */
  readonly #delayed = new Set<() => void>()
  /** The delays of clients that disconnected. Thousands can do so at once, so each turn ends only a few. */
  readonly #abandoned: (() => void)[] = []
  #isDisposed = false

  /** Real time by default, even in tests that stop the app's clock, because the timers use real time. */
  constructor(rate: ResponseRate, clock: MonotonicClock = monotonicClock) {
    this.#rate = rate
    this.#clock = clock
  }

  /** The number of delayed responses. */
  get delayedCount(): number {
    return this.#delayed.size
  }

  /**
   * Calls `respond` once: immediately, after the caller's delay, or when `response` closes because the client
   * disconnected or was disconnected. Returns a function that ends the delay. `count` lets one response count
   * as several.
   */
  hold(caller: string, response: ServerResponse, respond: () => void, count = 1): () => void {
    const delayMs = this.#delayMs(caller, count)
    if (delayMs === 0 || this.#isDisposed) {
      respond()
      return () => {}
    }
    const { socket } = response.req
    const waiting = WAITING.get(socket) ?? new Set()
    const pipelined = waiting.size > 0 ? 1 : 0
    if (this.#pipelined + pipelined > PIPELINED_MAX) {
      socket.destroy()
      respond()
      return () => {}
    }
    const release = () => {
      if (!this.#delayed.delete(release)) return
      this.#pipelined -= pipelined
      waiting.delete(response)
      clearTimeout(timer)
      response.off('close', leave)
      respond()
    }
    const leave = () => this.#endLater(release)
    this.#delayed.add(release)
    this.#pipelined += pipelined
    WAITING.set(socket, waiting.add(response))
    const timer = setTimeout(release, delayMs)
    response.once('close', leave)
    return release
  }

  #endLater(release: () => void): void {
    this.#abandoned.push(release)
    if (this.#abandoned.length === 1) setImmediate(this.#endSome)
  }

  readonly #endSome = (): void => {
    const ended = this.#abandoned.splice(0, ENDED_PER_TICK)
    // Schedule the next batch first, in case one of these throws.
    if (this.#abandoned.length > 0) setImmediate(this.#endSome)
    for (const release of ended) release()
  };

  /** Sends all delayed responses, and delays no more from now on. */
  [Symbol.dispose](): void {
    this.#isDisposed = true
    for (const release of this.#delayed) release()
  }

  #delayMs(caller: string, count: number): number {
    const { perSecond, nodePerSecond, perSecondInFlood, delayMsMax } = this.#rate
    const nowMs = this.#clock()
    const next = (paidOffAtMs: number, rate: number, debtMsMax: number): number => {
      const owedMs = Math.max(paidOffAtMs, nowMs) + (count * SECOND_MS) / rate
      return Math.min(owedMs, nowMs + BURST_MS + debtMsMax)
    }
    this.#nodePaidOffAtMs = next(this.#nodePaidOffAtMs, nodePerSecond, NODE_DEBT_MS_MAX)
    const isFlooded = this.#nodePaidOffAtMs - nowMs > BURST_MS
    const rate = isFlooded ? perSecondInFlood : perSecond
    const paidOffAtMs = next(this.#paidOffAtMs.get(caller) ?? 0, rate, delayMsMax)
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
