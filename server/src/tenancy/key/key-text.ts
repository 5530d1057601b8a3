import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * An API key's text: `annals_<kid>_<secret>_<crc32>`, base62. The kid identifies the row, the secret
 * (256 bits) authenticates the caller, and the checksum catches typos and random guesses without a
 * lookup. The database stores only the SHA-256 of the secret: it has too much entropy to guess, so a
 * slow hash would slow down every request and protect nothing.
 */
type KeyText = { kid: string; secret: string }

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const PREFIX = 'annals_'
const KID_LENGTH = 12
/** 62^43 is the first power above 2^256. */
const SECRET_LENGTH = 43
const CHECKSUM_LENGTH = 6
const KEY = new RegExp(
  `^annals_([0-9A-Za-z]{${KID_LENGTH}})_([0-9A-Za-z]{${SECRET_LENGTH}})_([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`,
)

export function createKeyText(): KeyText & { text: string; prefix: string; secretHash: Buffer } {
  const kid = Array.from({ length: KID_LENGTH }, () => DIGITS.charAt(randomInt(62))).join('')
  const secret = newSecret()
  const body = `annals_${kid}_${secret}`
  return {
    kid,
    secret,
    text: `${body}_${checksumOf(body)}`,
    prefix: prefixOf(kid),
    secretHash: hashSecret(secret),
  }
}

/** Returns null if the text is not a valid key, without querying the database. */
export function parseKeyText(text: string): KeyText | null {
  const [, kid, secret, checksum] = KEY.exec(text) ?? []
  if (!kid || !secret || !checksum) return null
  if (fromBase62(checksum) !== crc32(text.slice(0, -CHECKSUM_LENGTH - 1))) return null
  return { kid, secret }
}

/** The part of the text where a key has its kid. The text may be anything. */
export function kidOf(text: string): string {
  return text.slice(PREFIX.length, PREFIX.length + KID_LENGTH)
}

export function prefixOf(kid: string): string {
  return `annals_${kid}`
}

export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

export function matchesSecret(secret: string, secretHash: Buffer): boolean {
  return timingSafeEqual(hashSecret(secret), secretHash)
}

/** 256 random bits in base62. */
function newSecret(): string {
  let rest = BigInt(`0x${randomBytes(32).toString('hex')}`)
  let text = ''
  while (text.length < SECRET_LENGTH) {
    text = DIGITS.charAt(Number(rest % 62n)) + text
    rest /= 62n
  }
  return text
}

function checksumOf(body: string): string {
  let rest = crc32(body)
  let text = ''
  while (text.length < CHECKSUM_LENGTH) {
    text = DIGITS.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** Runs on every request, so it avoids BigInt. */
function fromBase62(text: string): number {
  let value = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    const digit =
      code < UPPER_A ? code - ZERO : code < LOWER_A ? code - UPPER_A + 10 : code - LOWER_A + 36
    value = value * 62 + digit
  }
  return value
}

const ZERO = 0x30
const UPPER_A = 0x41
const LOWER_A = 0x61
