import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { contractKey, standardKey } from './webhook-secret.ts'

/** `next` is there while a rotation's overlap lasts; afterwards it is `current`, alone. */
export type SecretPair = { current: string; next: string | null }

/** What one attempt sends. The body is signed and sent as the same bytes. */
export type Attempt = {
  body: Buffer | string
  deliveryId: string
  /** From 1. */
  attempt: number
  sequence: number
  timestampSeconds: number
  traceId: string | null
  isTest: boolean
}

export type Signer = (attempt: Attempt) => Record<string, string>

/**
 * Gives the headers of an attempt, every one that we set. Two signatures stand side by side: the
 * contract's, over the body alone, and that of Standard Webhooks, which covers id and time as well
 * and so lets a receiver refuse a replay.
 *
 * During an overlap the contract's header, which holds one signature, stays with the old secret;
 * the other carries both, and a receiver that holds either secret finds its own.
 *
 * To be made once for a pair and kept: the keys become key objects here. An HMAC over 600 bytes
 * takes 2.7 µs with a key object and 22 µs with the same key as a Buffer. Two one-shot hashes with
 * the padded key, the same HMAC by hand, take 3.2 µs.
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
