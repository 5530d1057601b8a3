import { formatCount, formatDuration } from '../../parts/format.ts'
import type { Webhook, WebhookHealth } from './webhook-types.ts'

/** When it was last heard of, which is how a new one is told from one with nothing to do. */
type Heard = Pick<Webhook, 'lastSuccessAt' | 'lastFailureAt'>

/** All that is known of a day, in a line. */
export function healthText(health: WebhookHealth, heard: Heard): string {
  const { medianMs, open } = health
  const within = withinText(health)
  return [
    deliveredText(health, heard),
    ...(within !== null && medianMs !== null ? [`median ${formatDuration(medianMs)}`, within] : []),
    `${formatCount(open)} open`,
  ].join(' · ')
}

/**
 * What became of all that was to be sent in the time of the bars. What waits for another attempt is not
 * delivered: a receiver that refuses everything is at fault long before its last attempt.
 */
export function deliveredText({ hours, isCut }: WebhookHealth, heard: Heard): string {
  const { delivered, all } = sumOf(hours)
  if (all === 0) {
    const isNew = heard.lastSuccessAt === null && heard.lastFailureAt === null
    return isNew ? 'Nothing sent yet' : 'Nothing new in 24 hours'
  }
  const share = `${Math.floor((delivered / all) * 1_000) / 10} %`
  // A busy webhook has more in a day than the service looks at.
  if (isCut) return `${share} of the newest ${formatCount(all)} delivered`
  if (delivered === 0) return `None of ${formatCount(all)} delivered in 24 hours`
  return `${share} delivered in 24 hours`
}

/** How long attempts take; null for a webhook that gets none through, to which it says nothing. */
export function withinText({ hours, p95Ms }: WebhookHealth): string | null {
  if (p95Ms === null || sumOf(hours).delivered === 0) return null
  return `95 % within ${formatDuration(p95Ms)}`
}

function sumOf(hours: WebhookHealth['hours']): { delivered: number; all: number } {
  const sum = { delivered: 0, all: 0 }
  for (const { succeeded, failed, waiting } of hours) {
    sum.delivered += succeeded
    sum.all += succeeded + failed + waiting
  }
  return sum
}
