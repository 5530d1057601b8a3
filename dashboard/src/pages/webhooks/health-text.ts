import { formatCount, formatDuration } from '../../parts/format.ts'
import type { Webhook, WebhookHealth } from './webhook-types.ts'

/** Distinguishes a new webhook from an idle one. */
type LastResults = Pick<Webhook, 'lastSuccessAt' | 'lastFailureAt'>

/** Summarizes the last 24 hours in one line. */
export function healthText(health: WebhookHealth, lastResults: LastResults): string {
  const { medianMs, open } = health
  const p95 = p95Text(health)
  return [
    successRateText(health, lastResults),
    ...(p95 !== null && medianMs !== null ? [`median ${formatDuration(medianMs)}`, p95] : []),
    `${formatCount(open)} open`,
  ].join(' · ')
}

/**
 * The share of the deliveries of the last 24 hours that succeeded. Deliveries that wait for a retry don't
 * count as succeeded, so that a receiver that rejects everything shows long before its last attempt.
 */
export function successRateText({ hours, isCut }: WebhookHealth, lastResults: LastResults): string {
  const { delivered, all } = sumOf(hours)
  if (all === 0) {
    const isNew = lastResults.lastSuccessAt === null && lastResults.lastFailureAt === null
    return isNew ? 'No deliveries yet' : 'No deliveries in 24 hours'
  }
  const share = `${Math.floor((delivered / all) * 1_000) / 10}%`
  // A busy webhook has more deliveries per day than the service counts.
  if (isCut) return `${share} of the newest ${formatCount(all)} succeeded`
  if (delivered === 0) return `None of ${formatCount(all)} succeeded in 24 hours`
  return `${share} succeeded in 24 hours`
}

/**
 * The 95th percentile of attempt durations. Null if nothing succeeded, because it would be meaningless.
 */
export function p95Text({ hours, p95Ms }: WebhookHealth): string | null {
  if (p95Ms === null || sumOf(hours).delivered === 0) return null
  return `p95 ${formatDuration(p95Ms)}`
}

function sumOf(hours: WebhookHealth['hours']): { delivered: number; all: number } {
  const sum = { delivered: 0, all: 0 }
  for (const { succeeded, failed, waiting } of hours) {
    sum.delivered += succeeded
    sum.all += succeeded + failed + waiting
  }
  return sum
}
