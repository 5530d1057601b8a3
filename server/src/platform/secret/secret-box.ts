import assert from 'node:assert/strict'
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Secret } from './secret.ts'

const CIPHER = 'aes-256-gcm'
/**
 * The first byte of the stored data, so that a later version can use another cipher
 * and both can be distinguished.
 */
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES

/**
 * Encrypts texts that must be readable again, such as webhook secrets, so that the database can't read
 * them. `associated` binds the ciphertext to its row: copied to another row, it can't be decrypted.
 *
 * Layout: version, nonce, tag, ciphertext. Nonces are random, which is safe for 2^32 texts per key. With
 * one text per secret ever created, the number stays far below that.
 */
export class SecretBox {
  readonly #key: Buffer

  /** A box can't open the texts of a box with a different purpose. */
  constructor(secretKey: Secret<Buffer>, purpose: string) {
    const info = `annals/secret-box/${purpose}`
    this.#key = Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', info, 32))
  }

  seal(plain: string, associated: string): Buffer {
    assert(plain.isWellFormed(), 'an unpaired surrogate would come back as another text')
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES })
    cipher.setAAD(Buffer.from(associated))
    const text = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), text])
  }

  /** Null if the text wasn't sealed with this key and purpose for `associated`, or if it was modified. */
  open(sealed: Buffer, associated: string): string | null {
    if (sealed.length < HEAD_BYTES || sealed[0] !== VERSION) return null
    const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
    const decipher = createDecipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(associated))
    decipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES))
    const plain = decipher.update(sealed.subarray(HEAD_BYTES))
    try {
      return Buffer.concat([plain, decipher.final()]).toString()
    } catch {
      // `final` throws only if the tag doesn't match.
      return null
    }
  }
}
