import assert from 'node:assert/strict'
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Secret } from './secret.ts'

const CIPHER = 'aes-256-gcm'
/** The first byte of what is stored, so that another cipher can follow and both be told apart. */
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES

/**
 * Keeps texts that must be read again, such as a webhook's secret, out of the database's sight. A
 * box is bound to the row that it stands in by `associated`: copied into another row, it stays shut.
 *
 * Layout: version, nonce, tag, cipher text. Nonces are random, which is safe for 2^32 texts a key;
 * one text for each secret that was ever made stays far below.
 */
export class SecretBox {
  readonly #key: Buffer

  /** Boxes of different purposes do not open each other's texts. */
  constructor(secretKey: Secret<Buffer>, purpose: string) {
    const info = `annals/secret-box/${purpose}`
    this.#key = Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', info, 32))
  }

  seal(plain: string, associated: string): Buffer {
    assert(plain.isWellFormed(), 'half of a surrogate pair would come back as another text')
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES })
    cipher.setAAD(Buffer.from(associated))
    const text = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), text])
  }

  /** Null when it was not sealed with this key and purpose for `associated`, or was altered. */
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
      // The one thing that `final` throws for: the tag does not fit.
      return null
    }
  }
}
