import type { AttemptOutcome, DeliveryStatus } from '../delivery/delivery.ts'

/** The possible statuses after an attempt, a subset of what `DELIVERY_TRANSITIONS` allows from SENDING. */
export type StatusAfterAttempt = Extract<DeliveryStatus, 'SUCCEEDED' | 'RETRY_SCHEDULED' | 'FAILED'>

/** HTTP 410 Gone: the receiver is permanently gone. */
const HTTP_GONE = 410

export function statusAfter(
  outcome: AttemptOutcome,
  { attemptsLeft }: { attemptsLeft: number },
): StatusAfterAttempt {
  switch (outcome.kind) {
    case 'accepted':
      return 'SUCCEEDED'
    case 'refused':
    case 'unreachable':
      return attemptsLeft > 0 && !disablesWebhook(outcome) ? 'RETRY_SCHEDULED' : 'FAILED'
    default:
      return outcome satisfies never
  }
}

/** Whether the response disables the webhook, which also ends all its other deliveries. */
export function disablesWebhook(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'refused' && outcome.responseStatus === HTTP_GONE
}
