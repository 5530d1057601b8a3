import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { contractKey, standardKey } from './webhook-secret.ts'

/** `next` is set during a rotation's overlap. After that, it becomes `current`. */
type SecretPair = { current: string; next: string | null }

/** What one attempt sends. The body is signed and sent as the same bytes. */
export type Attempt = {
  body: Buffer | string
  deliveryId: string
  /** Counted from 1. */
  attempt: number
  sequence: number
  timestampSeconds: number
  traceId: string | null
  isTest: boolean
}

export type Signer = (attempt: Attempt) => Record<string, string>

/**
 * Returns a function that computes all headers we set on an attempt. There are two signatures: that of our
 * API contract covers only the body, and that of Standard Webhooks also covers id and time, so that a
 * receiver can reject replays.
 *
 * During an overlap, the contract's header, which has room for one signature, keeps using the old secret. The
 * other header has both signatures, so a receiver with either secret finds a match.
 *
 * Create one signer per pair and reuse it, because it converts the keys to key objects. An HMAC over 600
 * bytes takes 2.7 µs with a key object and 22 µs with the same key as a Buffer. Computing it by hand, with
 * two one-shot hashes and the padded key, takes 3.2 µs.
 */
export function createSigner({ current, next }: SecretPair): Signer {
  const bodyKey = createSecretKey(contractKey(current))
  const standardKeys = [current, next]
    .filter((secret) => secret !== null)
    .map((secret) => createSecretKey(standardKey(secret)))

  return ({ body, deliveryId, attempt, sequence, timestampSeconds, traceId, isTest }) => {
    const timestamp = String(timestampSeconds)
    const signed = `${deliveryId}.${timestamp}.`
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      'user-agent': 'Annals-Webhooks/1',
      'x-service-signature': `v1=${createHmac('sha256', bodyKey).update(body).digest('hex')}`,
      'x-service-timestamp': timestamp,
      'x-service-delivery-id': deliveryId,
      'x-service-attempt': String(attempt),
      'x-service-sequence': String(sequence),
      'webhook-id': deliveryId,
      'webhook-timestamp': timestamp,
      'webhook-signature': standardKeys
        .map((key) => standardSignature(key, signed, body))
        .join(' '),
    }
    if (traceId !== null) headers['x-trace-id'] = traceId
    if (isTest) headers['x-service-test'] = 'true'
    return headers
  }
}

function standardSignature(key: KeyObject, signed: string, body: Buffer | string): string {
  return `v1,${createHmac('sha256', key).update(signed).update(body).digest('base64')}`
}
