import { formatCount, formatDuration } from '../../parts/text/format.ts'
import type { Webhook, WebhookHealth } from './webhook-types.ts'

/** Distinguishes a new webhook from an idle one. */
type LastResults = Pick<Webhook, 'lastSuccessAt' | 'lastFailureAt' | 'failureCount'>

/** Summarizes the health in one line. */
export function healthText(health: WebhookHealth, lastResults: LastResults): string {
  const { medianMs } = health
  const p95 = p95Text(health)
  return [
    ...rateTexts(health, lastResults),
    ...backlogTexts(health),
    ...(lastResults.failureCount > 0
      ? [`${formatCount(lastResults.failureCount)} failed in a row`]
      : []),
    ...(p95 !== null && medianMs !== null ? [`median ${formatDuration(medianMs)}`, p95] : []),
  ].join(' · ')
}

/**
 * The share of deliveries that succeeded. Deliveries that wait for a retry don't count as succeeded, so that
 * a receiver that rejects everything shows long before its last attempt.
 */
export function rateTexts(
  { lastHour, lastDay, isCut }: WebhookHealth,
  { lastSuccessAt, lastFailureAt }: LastResults,
): string[] {
  const day = rateText(lastDay)
  if (day === null) {
    const isNew = lastSuccessAt === null && lastFailureAt === null
    return [isNew ? 'No deliveries yet' : 'No deliveries in 24 hours']
  }
  const hour = rateText(lastHour)
  return [
    ...(hour === null ? [] : [`Last hour: ${hour}`]),
    // A busy webhook has more deliveries per day than the service counts.
    `${isCut ? 'Newest' : '24 hours'}: ${day}`,
  ]
}

function rateText({ succeeded, failed, retrying }: WebhookHealth['lastDay']): string | null {
  const all = succeeded + failed + retrying
  if (all === 0) return null
  // Rounds down, so that 100% means all.
  return `${Math.floor((succeeded / all) * 1_000) / 10}% of ${formatCount(all)} delivered`
}

export function backlogTexts({ open, overdueSince }: WebhookHealth): string[] {
  if (open === 0) return []
  const overdueMs = overdueSince === null ? 0 : Date.now() - Date.parse(overdueSince)
  const overdueMin = Math.floor(overdueMs / 60_000)
  return [
    `${formatCount(open)} open`,
    ...(overdueMin > 0 ? [`up to ${formatCount(overdueMin)} min overdue`] : []),
  ]
}

/**
 * The 95th percentile of attempt durations. Null if nothing succeeded, because it would be meaningless.
 */
export function p95Text({ lastDay, p95Ms }: WebhookHealth): string | null {
  if (p95Ms === null || lastDay.succeeded === 0) return null
  return `p95 ${formatDuration(p95Ms)}`
}
