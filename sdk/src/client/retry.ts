import { AnnalsApiError, AnnalsNetworkError, AnnalsTimeoutError } from './errors.ts'

/**
 * What a second execution of a request would do. `safe`: nothing more than the first. `if-refused`: it
 * could create a second object, so it is repeated only if the service certainly refused the first.
 */
export type RetryPolicy = 'safe' | 'if-refused'

const FIRST_WAIT_MS = 200
const WAIT_MS_MAX = 10_000
/** Refused before anything happened. */
const REFUSED = new Set(['rate_limited', 'overloaded'])
const TRANSIENT = new Set([408, 429, 502, 503, 504])

/**
 * How long to wait before the request is repeated, or null if it must not be.
 *
 * A wait that the service asked for only ever gets longer, so that clients that were refused together don't
 * come back together.
 */
export function retryWaitMs(
  error: unknown,
  {
    attempt,
    retriesMax,
    retryAfterMsMax,
    retryPolicy,
    random,
  }: {
    /** The number of the attempt that failed, starting at 1. */
    attempt: number
    retriesMax: number
    retryAfterMsMax: number
    retryPolicy: RetryPolicy
    random: () => number
  },
): number | null {
  if (attempt > retriesMax || !isTransient(error, retryPolicy)) return null
  const backoffMs = Math.min(WAIT_MS_MAX, FIRST_WAIT_MS * 2 ** (attempt - 1))
  const asked = error instanceof AnnalsApiError ? error.retryAfterMs : null
  if (asked === null) return backoffMs * (0.5 + random() / 2)
  if (asked > retryAfterMsMax) return null
  return asked + random() * Math.max(FIRST_WAIT_MS, asked / 5)
}

/** Whether the same request can succeed later. */
function isTransient(error: unknown, retryPolicy: RetryPolicy): boolean {
  if (error instanceof AnnalsApiError) {
    if (REFUSED.has(error.code)) return true
    return retryPolicy === 'safe' && error.status !== null && TRANSIENT.has(error.status)
  }
  const isUnknown = error instanceof AnnalsNetworkError || error instanceof AnnalsTimeoutError
  return isUnknown && retryPolicy === 'safe'
}

/** The wait that a `Retry-After` header asks for, in seconds or until a date. Null without a valid one. */
export function parseRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1_000
  // `Date.parse` finds a date in almost any text.
  const atMs = header.endsWith(' GMT') ? Date.parse(header) : Number.NaN
  return Number.isNaN(atMs) ? null : Math.max(0, atMs - nowMs)
}
