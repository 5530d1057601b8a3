import { randomBytes } from 'node:crypto'
import type { Secret } from '../../platform/secret.ts'
import { SecretBox } from '../../platform/secret-box.ts'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32
/** RFC 4648 with the standard alphabet. Its padding may be left out, but not be wrong. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** Seals and opens the webhook secrets that the database keeps. */
export function webhookBox(secretKey: Secret<Buffer>): SecretBox {
  return new SecretBox(secretKey, 'webhook')
}

/** A generated secret, in the form that the libraries of Standard Webhooks take as it is. */
export function newWebhookSecret(random: (bytes: number) => Buffer = randomBytes): string {
  return PREFIX + random(SECRET_BYTES).toString('base64')
}

/** The key of `x-service-signature`: the whole secret as it was returned, prefix included. */
export function contractKey(secret: string): Buffer {
  return Buffer.from(secret)
}

/**
 * The key of `webhook-signature`: the bytes that stand in base64 after `whsec_`, else the UTF-8 of
 * the whole secret. A custom secret is free text, so it may begin with the prefix and be no base64;
 * then it is free text like any other.
 *
 * The libraries differ where a text is not quite base64. Those for JavaScript and Python take it
 * without padding, those for Go and Java do not; the first drops a last character that is left over
 * and throws on foreign ones, the second drops foreign ones. Here a text is decoded when it has one
 * meaning: a receiver adds the padding where its library wants it, and gets the same key. All others
 * are used raw; to any library their key can be given as its base64. The libraries decode a secret
 * without the prefix too. That was rejected here: `password` is base64, and is free text.
 */
export function standardKey(secret: string): Buffer {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  const isEncoded = encoded !== '' && BASE64.test(encoded)
  return isEncoded ? Buffer.from(encoded, 'base64') : Buffer.from(secret)
}
