/**
 * When a chain is verified again: a whole number of intervals after it was due, so that chains stay spread over the
 * interval, but never in the past, so that missed runs are skipped.
 */
export function nextDueAt(dueAt: Date, now: Date, intervalMs: number): Date {
  const dueAtMs = Math.min(dueAt.getTime(), now.getTime())
  const intervals = Math.floor((now.getTime() - dueAtMs) / intervalMs) + 1
  return new Date(dueAtMs + intervals * intervalMs)
}
