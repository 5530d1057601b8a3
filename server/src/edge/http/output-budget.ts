import { ApiError } from '../../errors.ts'

const MB = 1_000_000

type OutputBudgetLimits = {
  companyBytesMax: number
  /** On top of `companyBytesMax`, for responses of routes that don't send large ones. */
  companySmallBytes: number
  nodeBytesMax: number
  /** The part of `nodeBytesMax` that large responses of companies with little unread output can use. */
  reservedBytes: number
  /** A company with at most this much has little unread output. A large page fits. */
  smallBytesMax: number
}

/** A company can read twenty of the largest pages at once, at any speed. */
const LIMITS: OutputBudgetLimits = {
  companyBytesMax: 48 * MB,
  companySmallBytes: 8 * MB,
  nodeBytesMax: 256 * MB,
  reservedBytes: 64 * MB,
  smallBytesMax: 4 * MB,
}

/** `isLarge` means that the route can send large responses, whatever the size of this one. */
type Output = { bytes: number; isLarge: boolean }

/**
 * Limits the responses that clients have not read yet, per company and per node. A client has a minute to
 * read, so without limits one company could fill the memory with pages of 2 MB. Large responses are refused
 * first: a company with slow readers still gets small ones, and so does every company with little unread
 * output, whatever the others do.
 */
export class OutputBudget {
  readonly #limits: OutputBudgetLimits
  readonly #companies = new Map<string, number>()
  #nodeBytes = 0

  constructor(limits: Partial<OutputBudgetLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits }
  }

  /** Unread bytes on the node. */
  get bytes(): number {
    return this.#nodeBytes
  }

  /** Null if the company can have this much more unread output. */
  refusal(companyId: string, { bytes, isLarge }: Output): ApiError | null {
    const { companyBytesMax, companySmallBytes, nodeBytesMax, reservedBytes, smallBytesMax } =
      this.#limits
    const companyBytes = (this.#companies.get(companyId) ?? 0) + bytes
    if (companyBytes > companyBytesMax + (isLarge ? 0 : companySmallBytes)) {
      return new ApiError('rate_limited', {
        message: `Unread responses to this company would exceed ${companyBytesMax / MB} MB. Read them before you request more.`,
      })
    }
    const isSmall = companyBytes <= smallBytesMax
    if (isSmall && !isLarge) return null
    const bytesMax = isLarge && !isSmall ? nodeBytesMax - reservedBytes : nodeBytesMax
    return this.#nodeBytes + bytes > bytesMax ? new ApiError('overloaded') : null
  }

  /** Counts a response until the returned function is called. Further calls have no effect. */
  hold(companyId: string, bytes: number): () => void {
    this.#add(companyId, bytes)
    let isReserved = true
    return () => {
      if (isReserved) this.#add(companyId, -bytes)
      isReserved = false
    }
  }

  #add(companyId: string, bytes: number): void {
    const companyBytes = (this.#companies.get(companyId) ?? 0) + bytes
    if (companyBytes === 0) this.#companies.delete(companyId)
    else this.#companies.set(companyId, companyBytes)
    this.#nodeBytes += bytes
  }
}
