import type { Tone } from '../../parts/StatusText.tsx'
import type { Delivery, DeliveryStatus } from './webhook-types.ts'

/** The label and color of each delivery status. */
export const DELIVERY_WORDS: Record<DeliveryStatus, { word: string; tone: Tone }> = {
  PENDING: { word: 'Waiting', tone: 'neutral' },
  SENDING: { word: 'On its way', tone: 'neutral' },
  SUCCEEDED: { word: 'Delivered', tone: 'good' },
  RETRY_SCHEDULED: { word: 'Will be retried', tone: 'warn' },
  FAILED: { word: 'Failed', tone: 'bad' },
}

/** Unlike a key, the secret is stored in full, because it signs every delivery. */
export const SECRET_KEPT =
  'The service keeps it to sign with, and shows it to nobody. Whoever loses it rotates it.'

const ERROR_LABELS: Record<NonNullable<Delivery['errorClass']>, string> = {
  dns: 'name not found',
  connect: 'no connection',
  tls: 'TLS failed',
  timeout: 'timed out',
  reset: 'cut off',
  redirect: 'redirected',
  blocked_address: 'address not allowed',
  http: 'no proper answer',
}

/** The response status, or why there is none. */
export function answerText({
  responseStatus,
  errorClass,
}: Pick<Delivery, 'responseStatus' | 'errorClass'>): string | null {
  if (responseStatus !== null) return String(responseStatus)
  return errorClass === null ? null : ERROR_LABELS[errorClass]
}

/** Why nothing can be sent to a disabled webhook. */
export const ENABLE_FIRST = 'This webhook is disabled. Enable it first.'
