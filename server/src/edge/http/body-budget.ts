import { ApiError } from '../../errors.ts'

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

/** The memory that one body uses. `release` returns all of it, and can be called twice. */
export type BodyLease = { grow: (bytes: number) => ApiError | null; release: () => void }

type Usage = { bodies: number; bytes: number }

/**
 * Bounds the request bodies that are still arriving or being read: how many a caller has, and how much
 * memory they take per caller and per node. A request has half a minute to arrive, so without bounds one
 * company could hold gigabytes, or every connection. A few callers with large bodies cannot use up the
 * node: part of it is reserved for small ones.
 */
export class BodyBudget {
  readonly #limits: BodyBudgetLimits
  readonly #usages = new Map<string, Usage>()
  #nodeBytes = 0

  constructor(limits: Partial<BodyBudgetLimits> & Pick<BodyBudgetLimits, 'callerBodiesMax'>) {
    this.#limits = { ...LIMITS, ...limits }
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
