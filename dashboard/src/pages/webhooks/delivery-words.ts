import type { Tone } from '../../parts/StatusText.tsx'
import type { DeliveryStatus } from './webhook-types.ts'

/** A delivery's state in a word and a colour. */
export const DELIVERY_WORDS: Record<DeliveryStatus, { word: string; tone: Tone }> = {
  PENDING: { word: 'Waiting', tone: 'neutral' },
  SENDING: { word: 'On its way', tone: 'neutral' },
  SUCCEEDED: { word: 'Delivered', tone: 'good' },
  RETRY_SCHEDULED: { word: 'Will be retried', tone: 'warn' },
  FAILED: { word: 'Failed', tone: 'bad' },
}
