import { ApiError } from '../errors.ts'

const MB = 1_000_000

export type BodyBudgetLimits = {
  callerBytesMax: number
  nodeBytesMax: number
  /** The part of `nodeBytesMax` that only callers with at most `smallBytesMax` in use can take. */
  reservedBytes: number
  smallBytesMax: number
}

const LIMITS: BodyBudgetLimits = {
  callerBytesMax: 32 * MB,
  nodeBytesMax: 256 * MB,
  reservedBytes: 64 * MB,
  smallBytesMax: MB,
}

/** The memory that one body uses. `release` returns all of it, and can be called twice. */
export type BodyLease = { grow: (bytes: number) => ApiError | null; release: () => void }

/**
 * Bounds the memory of request bodies that are still arriving or being read, per caller and per node.
 * A request has half a minute to arrive, so without a bound one key could hold gigabytes. A few
 * callers with large bodies cannot use up the node: part of it is reserved for small ones.
 */
export class BodyBudget {
  readonly #limits: BodyBudgetLimits
  readonly #bytesByCaller = new Map<string, number>()
  #nodeBytes = 0

  constructor(limits: BodyBudgetLimits = LIMITS) {
    this.#limits = limits
  }

  /** Bytes in use on the node. */
  get bytes(): number {
    return this.#nodeBytes
  }

  open(caller: string): BodyLease {
    let held = 0
    return {
      grow: (bytes) => {
        const refusal = this.#refusal(caller, bytes)
        if (refusal) return refusal
        held += bytes
        this.#add(caller, bytes)
        return null
      },
      release: () => {
        if (held > 0) this.#add(caller, -held)
        held = 0
      },
    }
  }

  #refusal(caller: string, bytes: number): ApiError | null {
    const { callerBytesMax, nodeBytesMax, reservedBytes, smallBytesMax } = this.#limits
    const callerBytes = (this.#bytesByCaller.get(caller) ?? 0) + bytes
    if (callerBytes > callerBytesMax) {
      return new ApiError('rate_limited', {
        message: `Request bodies in progress use more than ${callerBytesMax / MB} MB. Send fewer at once.`,
      })
    }
    const bytesMax = callerBytes > smallBytesMax ? nodeBytesMax - reservedBytes : nodeBytesMax
    return this.#nodeBytes + bytes > bytesMax ? new ApiError('overloaded') : null
  }

  #add(caller: string, bytes: number): void {
    this.#nodeBytes += bytes
    const callerBytes = (this.#bytesByCaller.get(caller) ?? 0) + bytes
    if (callerBytes > 0) this.#bytesByCaller.set(caller, callerBytes)
    else this.#bytesByCaller.delete(caller)
  }
}
