import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type MonotonicClock, monotonicClock } from '../../../platform/time/clock.ts'
import { CallerDebts, type DebtRate } from './caller-debts.ts'

const USUAL = { nodePerSecond: 1_000, pauseMsMax: 10_000 } as const

/** More refusals than a faulty client causes, and 3% of the main thread. */
export const REFUSAL_RATE: DebtRate = {
  ...USUAL,
  perSecond: 100,
  nodePerSecond: 500,
  perSecondInFlood: 10,
  perSecondMin: 0.1,
}
/** More than a client with faulty events causes, and 9% of the main thread. */
export const KEY_REFUSAL_RATE: DebtRate = {
  ...USUAL,
  perSecond: 300,
  perSecondInFlood: 30,
  perSecondMin: 1,
}
/** Ten page loads per second for the browsers behind one address: a page has about 30 files. */
export const PAGE_RATE: DebtRate = {
  ...USUAL,
  perSecond: 300,
  perSecondInFlood: 30,
  perSecondMin: 0.2,
}
/** Short delays: a load balancer takes a node out of service if its check takes too long. */
export const CHECK_RATE: DebtRate = { ...PAGE_RATE, perSecondMin: 10, pauseMsMax: 1_000 }
/** Three page loads per second of one member: a page sends fewer than 30 requests. */
export const MEMBER_RATE: DebtRate = {
  ...USUAL,
  perSecond: 100,
  perSecondInFlood: 30,
  perSecondMin: 5,
}
/** Enough for a hundred members who work at the same time, and a tenth of the main thread. */
export const COMPANY_RATE: DebtRate = {
  ...USUAL,
  perSecond: 300,
  perSecondInFlood: 100,
  perSecondMin: 10,
}

/** The delayed responses of each connection, across all throttles. */
const WAITING = new WeakMap<Socket, Set<ServerResponse>>()

/** True while a response waits because its caller gets too many. */
export function isDelayed(response: ServerResponse): boolean {
  return WAITING.get(response.req.socket)?.has(response) === true
}

/** How many responses of a throttle can wait beyond the first of each connection. */
export const PIPELINED_MAX = 1_000
const ENDED_PER_TICK = 20

/**
 * Delays the responses to callers that get many of one kind per second. A refusal or a page takes about
 * as much of the main thread as an event, and a flood sends its next request when the last one is
 * answered: 100 connections that were answered immediately made events wait twenty times as long.
 *
 * A flood on n connections gets at most n responses per longest pause of its rate, and one from many callers not
 * much more than the node's rate.
 *
 * One response of each connection can always wait, because the number of connections is limited. Further
 * ones, to pipelined requests, can wait while there are few. Beyond that, the connection is closed: an
 * immediate response would let a flood run at full speed.
 */
export class ResponseThrottle implements Disposable {
  readonly #debts: CallerDebts
  #pipelined = 0
  /** The functions that end the delays. */
  readonly #delayed = new Set<() => void>()
  /** The delays of clients that disconnected. Thousands can do so at once, so each turn ends only a few. */
  readonly #abandoned: (() => void)[] = []
  #isDisposed = false

  /** Real time by default, even in tests that stop the app's clock, because the timers use real time. */
  constructor(rate: DebtRate, clock: MonotonicClock = monotonicClock) {
    this.#debts = new CallerDebts(rate, clock)
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
    const delayMs = this.#debts.charge(caller, count)
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
}
