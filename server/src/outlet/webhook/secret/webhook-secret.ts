import { randomBytes } from 'node:crypto'
import type { Secret } from '../../../platform/secret/secret.ts'
import { SecretBox } from '../../../platform/secret/secret-box.ts'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
/** RFC 4648 with the standard alphabet. Padding is optional, but must be correct if present. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** Encrypts and decrypts the webhook secrets in the database. */
export function webhookSecretBox(secretKey: Secret<Buffer>): SecretBox {
  return new SecretBox(secretKey, 'webhook')
}

/** Generates a secret in the format that Standard Webhooks libraries accept unchanged. */
export function newWebhookSecret(random: (bytes: number) => Buffer = randomBytes): string {
  return PREFIX + random(SECRET_BYTES).toString('base64')
}

/** The key of `x-service-signature`: the whole secret as it was returned, prefix included. */
export function contractKey(secret: string): Buffer {
  return Buffer.from(secret)
}

/**
 * The key of `webhook-signature`: the bytes after `whsec_`, decoded from base64, or else the UTF-8 bytes of
 * the whole secret. A custom secret is free text, so it may start with the prefix without being base64.
 * Then it is treated like any other free text.
 *
 * The Standard Webhooks libraries treat imperfect base64 differently. Those for JavaScript and Python accept
 * missing padding, those for Go and Java don't. The JavaScript one drops a leftover last character and throws
 * on invalid ones, and the Python one drops invalid ones. We decode only text with a single possible meaning:
 * a receiver adds padding if its library needs it, and gets the same key. All other text is used raw, and any
 * library accepts such a key encoded as base64. The libraries also decode a secret without the prefix. We
 * don't, because `password` is valid base64, but is meant as text.
 */
export function standardKey(secret: string): Buffer {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  const isEncoded = encoded !== '' && BASE64.test(encoded)
  return isEncoded ? Buffer.from(encoded, 'base64') : Buffer.from(secret)
}
