import type { Tone } from '../../../parts/text/StatusText.tsx'
import type { Delivery, DeliveryStatus } from '../webhook-types.ts'

/** The label and color of each delivery status. */
export const DELIVERY_LABELS: Record<DeliveryStatus, { label: string; tone: Tone }> = {
  PENDING: { label: 'Pending', tone: 'neutral' },
  SENDING: { label: 'Sending', tone: 'neutral' },
  SUCCEEDED: { label: 'Succeeded', tone: 'good' },
  RETRY_SCHEDULED: { label: 'Retry scheduled', tone: 'warn' },
  FAILED: { label: 'Failed', tone: 'bad' },
}

/** Unlike a key, the secret is stored in full, because it signs every delivery. */
export const SECRET_STORAGE_NOTE =
  'Annals stores it to sign deliveries and never shows it again. If you lose it, rotate it.'

const ERROR_LABELS: Record<NonNullable<Delivery['errorClass']>, string> = {
  dns: 'DNS lookup failed',
  connect: 'connection failed',
  tls: 'TLS handshake failed',
  timeout: 'timed out',
  reset: 'connection reset',
  redirect: 'redirected',
  blocked_address: 'address not allowed',
  http: 'invalid HTTP response',
}

/** The response status, or why there is none. */
export function responseText({
  responseStatus,
  errorClass,
}: Pick<Delivery, 'responseStatus' | 'errorClass'>): string | null {
  if (responseStatus !== null) return String(responseStatus)
  return errorClass === null ? null : ERROR_LABELS[errorClass]
}

/** Why nothing can be sent to a disabled webhook. */
export const ENABLE_FIRST = 'This webhook is disabled. Enable it first.'

export const HEADERS_NOTE =
  'Sent with every delivery, for a receiver that requires an access header. Annals encrypts the values and never shows them again.'

export const SECRET_LABEL_NOTE =
  'Helps you recognize the secret, for example by where it is stored.'
