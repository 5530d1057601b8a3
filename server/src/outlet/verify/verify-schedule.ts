/**
 * When a chain is verified again: whole intervals after it was due, so that chains stay spread over the
 * interval, but never in the past, so that missed times are not made up for.
 */
export function nextDueAt(dueAt: Date, now: Date, intervalMs: number): Date {
  const dueAtMs = Math.min(dueAt.getTime(), now.getTime())
  const intervals = Math.floor((now.getTime() - dueAtMs) / intervalMs) + 1
  return new Date(dueAtMs + intervals * intervalMs)
}
