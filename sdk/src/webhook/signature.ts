const PREFIX = 'whsec_'
/** RFC 4648 with the standard alphabet. Padding is optional, but must be correct if present. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/
const HEX_SHA256 = /^[0-9a-f]{64}$/
/** A rotation has two. More would only cost time. */
const SIGNATURES_MAX = 10
const utf8 = new TextEncoder()

/** Whether one of the secrets made a signature of `webhook-signature` for this content. */
export async function isStandardSigned(
  header: string,
  content: Uint8Array<ArrayBuffer>,
  secrets: readonly string[],
): Promise<boolean> {
  const signatures = header.split(' ').slice(0, SIGNATURES_MAX)
  const decoded = signatures.flatMap((signature) => {
    const [version, text = ''] = signature.split(',')
    return version === 'v1' && BASE64.test(text) ? [decodeBase64(text)] : []
  })
  return await isSignedByAny(secrets.map(standardKey), decoded, content)
}

/** Whether one of the secrets made `x-service-signature` for this body. */
export async function isServiceSigned(
  header: string,
  body: Uint8Array<ArrayBuffer>,
  secrets: readonly string[],
): Promise<boolean> {
  const hex = header.startsWith('v1=') ? header.slice(3) : ''
  if (!HEX_SHA256.test(hex)) return false
  const keys = secrets.map((secret) => utf8.encode(secret))
  return await isSignedByAny(keys, [decodeHex(hex)], body)
}

/**
 * The key of `webhook-signature`: the bytes after `whsec_`, decoded from base64. Any other text is
 * the key itself, including text with the prefix but without base64.
 */
export function standardKey(secret: string): Uint8Array<ArrayBuffer> {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  return encoded !== '' && BASE64.test(encoded) ? decodeBase64(encoded) : utf8.encode(secret)
}

/** `crypto.subtle.verify` compares in constant time. Every pair is checked, whichever matches. */
async function isSignedByAny(
  keys: readonly Uint8Array<ArrayBuffer>[],
  signatures: readonly Uint8Array<ArrayBuffer>[],
  content: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const checks = keys.flatMap(async (bytes) => {
    const key = await crypto.subtle.importKey('raw', bytes, hmac, false, ['verify'])
    return await Promise.all(
      signatures.map((signature) => crypto.subtle.verify('HMAC', key, signature, content)),
    )
  })
  return (await Promise.all(checks)).flat().includes(true)
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

function decodeHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}
