import assert from 'node:assert/strict'

/** Delays between attempts. Eight attempts span about 28 hours. After that, the delivery is FAILED. */
const WAIT_SECONDS = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000] as const

export const ATTEMPTS_MAX = WAIT_SECONDS.length + 1

/** Spreads retries out, so that deliveries that failed together aren't all retried at the same second. */
const JITTER_MAX = 0.2

/** A receiver can ask for a longer pause, but not postpone a delivery forever. */
const RETRY_AFTER_WAITS_MAX = 2

/** No schedule allows more, so a longer pause is reduced to this. */
const RETRY_AFTER_MS_MAX = RETRY_AFTER_WAITS_MAX * Math.max(...WAIT_SECONDS) * 1_000

/** The longest time until a retry. */
export const WAIT_MS_MAX = RETRY_AFTER_MS_MAX * (1 + JITTER_MAX)

/**
 * When to retry after `attempt` failed, or null if it was the last attempt.
 *
 * Jitter only adds time, also to the receiver's `Retry-After`: a pause is never shorter than planned or
 * requested (within bounds), and deliveries with the same `Retry-After` don't return at the same time.
 */
export function nextAttemptAtMs({
  attempt,
  failedAtMs,
  retryAfterMs,
  jitter,
}: {
  /** The attempt that failed, counted from 1 since the schedule started. A redelivery restarts it. */
  attempt: number
  failedAtMs: number
  /** The receiver's `Retry-After`, or null if there was none. */
  retryAfterMs: number | null
  /** At least 0 and below 1. */
  jitter: () => number
}): number | null {
  assert(Number.isInteger(attempt) && attempt >= 1, 'attempts count from 1')
  const waitSeconds = WAIT_SECONDS[attempt - 1]
  if (waitSeconds === undefined) return null
  const plannedMs = waitSeconds * 1_000
  const requestedMs = Math.min(retryAfterMs ?? 0, RETRY_AFTER_WAITS_MAX * plannedMs)
  return failedAtMs + Math.round(Math.max(plannedMs, requestedMs) * (1 + JITTER_MAX * jitter()))
}

/**
 * Parses the pause requested by a `Retry-After` header, in seconds or as an HTTP date. Returns null if the
 * header is missing, invalid or in the past. Of the three HTTP date formats, it reads only the one that
 * senders must use. The planned delay applies for the others.
 */
export function readRetryAfter(header: string | undefined, nowMs: number): number | null {
  const text = header?.trim() ?? ''
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : readHttpDateMs(text) - nowMs
  return waitMs >= 0 ? Math.min(waitMs, RETRY_AFTER_MS_MAX) : null
}

/** Parses `Sun, 06 Nov 1994 08:49:37 GMT`, else NaN: `Date.parse` alone accepts almost anything. */
function readHttpDateMs(text: string): number {
  const ms = Date.parse(text)
  return !Number.isNaN(ms) && new Date(ms).toUTCString() === text ? ms : Number.NaN
}
