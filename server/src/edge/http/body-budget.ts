import type { IncomingMessage } from 'node:http'
import { ApiError } from '../../errors.ts'
import { type MonotonicClock, monotonicClock } from '../../platform/time/clock.ts'
import { CallerDebts, type DebtRate } from './throttle/caller-debts.ts'

const MB = 1_000_000

type BodyBudgetLimits = {
  callerBodiesMax: number
  callerBytesMax: number
  nodeBytesMax: number
  /** The part of `nodeBytesMax` that only callers with at most `smallBytesMax` in use can take. */
  reservedBytes: number
  smallBytesMax: number
}

const LIMITS: Omit<BodyBudgetLimits, 'callerBodiesMax'> = {
  callerBytesMax: 32 * MB,
  nodeBytesMax: 256 * MB,
  reservedBytes: 64 * MB,
  smallBytesMax: MB,
}

/**
 * Bytes of bodies. A company gets more than it can store, and a flood takes a tenth of the main thread.
 * Pauses are short, because a request has only half a minute to arrive.
 */
export const BODY_RATE: DebtRate = {
  perSecond: 32 * MB,
  nodePerSecond: 64 * MB,
  perSecondInFlood: 8 * MB,
  perSecondMin: MB,
  pauseMsMax: 1_000,
}

/** The memory and the rate of one body. */
export type BodyLease = {
  /** Reserves memory for the body. */
  grow: (bytes: number) => ApiError | null
  /** Counts bytes that arrived. Returns for how long to pause reading, in milliseconds. */
  receive: (bytes: number) => number
  /** Returns all of the memory. Can be called twice. */
  release: () => void
}

/** Stops reading a body for a while, so that its client has to wait. */
export function pauseBody(raw: IncomingMessage, pauseMs: number): void {
  if (pauseMs === 0) return
  raw.pause()
  setTimeout(() => raw.resume(), pauseMs).unref()
}

type Usage = { bodies: number; bytes: number }

/**
 * Bounds the request bodies that are still arriving or being read: how many a caller has, how fast they
 * arrive, and how much memory they take per caller and per node. A request has half a minute to arrive, so without bounds one
 * company could hold gigabytes, or every connection. A few callers with large bodies cannot use up the
 * node: part of it is reserved for small ones.
 */
export class BodyBudget {
  readonly #limits: BodyBudgetLimits
  readonly #usages = new Map<string, Usage>()
  readonly #debts: CallerDebts
  #nodeBytes = 0

  constructor(
    limits: Partial<BodyBudgetLimits> & Pick<BodyBudgetLimits, 'callerBodiesMax'>,
    clock: MonotonicClock = monotonicClock,
  ) {
    this.#limits = { ...LIMITS, ...limits }
    this.#debts = new CallerDebts(BODY_RATE, clock)
  }

  /** Bytes in use on the node. */
  get bytes(): number {
    return this.#nodeBytes
  }

  /** A refusal if the caller has too many bodies in progress. */
  open(caller: string): BodyLease | ApiError {
    const { callerBodiesMax } = this.#limits
    const usage = this.#usages.get(caller) ?? { bodies: 0, bytes: 0 }
    if (usage.bodies >= callerBodiesMax) {
      return new ApiError('rate_limited', {
        message: `More than ${callerBodiesMax} request bodies are in progress. Send fewer at once.`,
      })
    }
    usage.bodies += 1
    this.#usages.set(caller, usage)
    let leasedBytes = 0
    let isOpen = true
    return {
      grow: (bytes) => {
        const refusal = this.#refusal(usage, bytes)
        if (refusal) return refusal
        leasedBytes += bytes
        usage.bytes += bytes
        this.#nodeBytes += bytes
        return null
      },
      receive: (bytes) => this.#debts.charge(caller, bytes),
      release: () => {
        if (!isOpen) return
        isOpen = false
        usage.bytes -= leasedBytes
        this.#nodeBytes -= leasedBytes
        usage.bodies -= 1
        if (usage.bodies === 0) this.#usages.delete(caller)
      },
    }
  }

  #refusal(usage: Usage, bytes: number): ApiError | null {
    const { callerBytesMax, nodeBytesMax, reservedBytes, smallBytesMax } = this.#limits
    const callerBytes = usage.bytes + bytes
    if (callerBytes > callerBytesMax) {
      return new ApiError('rate_limited', {
        message: `Request bodies in progress use more than ${callerBytesMax / MB} MB. Send fewer at once.`,
      })
    }
    const bytesMax = callerBytes > smallBytesMax ? nodeBytesMax - reservedBytes : nodeBytesMax
    return this.#nodeBytes + bytes > bytesMax ? new ApiError('overloaded') : null
  }
}
