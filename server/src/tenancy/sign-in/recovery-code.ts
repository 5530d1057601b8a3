import { hash, randomBytes } from 'node:crypto'
import { base32 } from './totp.ts'

export const RECOVERY_CODES = 10
/** 80 bits: too many to guess, so a fast hash is enough. */
const CODE_BYTES = 10
const CODE = /^[A-Z2-7]{16}$/

/** A new set of codes, in groups of four characters. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () =>
    base32(randomBytes(CODE_BYTES)).replaceAll(/.{4}(?=.)/g, '$&-'),
  )
}

/** What the database stores. Null if the text isn't a recovery code. Case, blanks and hyphens don't matter. */
export function recoveryHash(text: string): Buffer | null {
  const code = text.replaceAll(/[\s-]/g, '').toUpperCase()
  return CODE.test(code) ? hash('sha256', code, 'buffer') : null
}
