import { createHmac, timingSafeEqual } from 'node:crypto'

/** What every authenticator app supports: RFC 6238 with SHA-1, six digits and steps of 30 seconds. */
const DIGITS = 6
const STEP_MS = 30_000
/** The RFC recommends 160 bits for SHA-1. */
export const TOTP_SECRET_BYTES = 20
/** How many steps the member's clock can be ahead or behind. */
const SKEW_STEPS = 1

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const BITS_PER_CHARACTER = 5

/**
 * Returns the time step of a code, or null if the code is wrong. A step up to `usedStep` doesn't count, so a
 * code works once, and so do the codes before it.
 */
export function acceptedStep(
  secret: Buffer,
  code: string,
  { nowMs, usedStep }: { nowMs: number; usedStep: number },
): number | null {
  const current = Math.floor(nowMs / STEP_MS)
  for (let step = current - SKEW_STEPS; step <= current + SKEW_STEPS; step += 1) {
    if (step > usedStep && isEqual(codeAt(secret, step), code)) return step
  }
  return null
}

/** The code that an authenticator app shows at this time. */
export function totpCode(secret: Buffer, nowMs: number): string {
  return codeAt(secret, Math.floor(nowMs / STEP_MS))
}

/** HOTP (RFC 4226) of the step. */
function codeAt(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.max(0, step)))
  const digest = createHmac('sha1', secret).update(counter).digest()
  const offset = digest.readUInt8(digest.length - 1) & 0x0f
  const number = digest.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0')
}

function isEqual(expected: string, actual: string): boolean {
  const [left, right] = [Buffer.from(expected), Buffer.from(actual)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** RFC 4648 without padding, as authenticator apps expect it. */
export function base32(bytes: Buffer): string {
  let text = ''
  let value = 0
  let bits = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= BITS_PER_CHARACTER) {
      bits -= BITS_PER_CHARACTER
      text += BASE32.charAt((value >>> bits) & 31)
    }
    value &= (1 << bits) - 1
  }
  return bits > 0 ? text + BASE32.charAt((value << (BITS_PER_CHARACTER - bits)) & 31) : text
}

/** The address that authenticator apps read from a QR code. */
export function otpauthUri({ email, secret }: { email: string; secret: Buffer }): string {
  return `otpauth://totp/Annals:${encodeURIComponent(email)}?secret=${base32(secret)}&issuer=Annals`
}
