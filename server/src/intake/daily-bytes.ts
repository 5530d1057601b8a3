import { ApiError } from '../errors.ts'
import type { CompanyId } from '../platform/id.ts'
import type { MonotonicClock } from '../platform/time/clock.ts'
import { DAY_MS } from '../platform/time/time-units.ts'

const COMPANIES_MAX = 10_000
const GB = 1e9

type Use = { bytes: number; atMs: number }

/**
 * Limits how many bytes of events a company stores per day on this node. Rates alone would let a cheap key fill the
 * disk with large events within hours. Each company has a leaky bucket that drains over a day, so a company that
 * reached the limit can continue at a lower rate. Beyond `COMPANIES_MAX`, the oldest bucket is discarded.
 */
export class DailyBytes {
  readonly #uses = new Map<CompanyId, Use>()
  readonly #monotonic: MonotonicClock

  constructor(monotonic: MonotonicClock) {
    this.#monotonic = monotonic
  }

  /** Throws if the company has stored as much as its plan allows. Null means no limit. */
  refuse(companyId: CompanyId, bytesMax: number | null): void {
    const use = this.#uses.get(companyId)
    if (!use) return
    if (bytesMax === null) {
      this.#uses.delete(companyId)
      return
    }
    const nowMs = this.#monotonic()
    const bytesPerMs = bytesMax / DAY_MS
    // At most a day's wait, even if a larger plan stored much more.
    const bytes = Math.min(use.bytes, 2 * bytesMax)
    use.bytes = Math.max(0, bytes - (nowMs - use.atMs) * bytesPerMs)
    use.atMs = nowMs
    if (use.bytes < bytesMax) return
    const waitMs = (use.bytes - bytesMax) / bytesPerMs
    throw new ApiError('rate_limited', {
      message: `The company has stored as many events as its plan allows per day: ${bytesMax / GB} GB. Retry after the delay in the Retry-After header.`,
      retryAfterSeconds: Math.ceil(waitMs / 1_000) + 1,
    })
  }

  add(companyId: CompanyId, bytes: number): void {
    const use = this.#uses.get(companyId)
    if (use) {
      use.bytes += bytes
      return
    }
    if (this.#uses.size >= COMPANIES_MAX) {
      const [first] = this.#uses.keys()
      if (first !== undefined) this.#uses.delete(first)
    }
    this.#uses.set(companyId, { bytes, atMs: this.#monotonic() })
  }
}
