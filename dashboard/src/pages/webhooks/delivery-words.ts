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

/** Unlike a key it is kept as it is, because every delivery is signed with it. */
export const SECRET_KEPT =
  'The service keeps it to sign with, and shows it to nobody. Whoever loses it rotates it.'
