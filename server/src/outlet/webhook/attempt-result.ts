import type { AttemptOutcome, DeliveryStatus } from './delivery.ts'

/** Where an attempt can lead: a part of what `NEXT` allows from SENDING. */
export type StatusAfterAttempt = Extract<DeliveryStatus, 'SUCCEEDED' | 'RETRY_SCHEDULED' | 'FAILED'>

/** HTTP's own word for "do not come back": the receiver is gone for good. */
const GONE = 410

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

/** Whether the receiver asked to be left alone. All its other deliveries end with this one. */
export function disablesWebhook(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'refused' && outcome.responseStatus === GONE
}
