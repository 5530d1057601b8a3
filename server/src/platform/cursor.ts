import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Secret } from './secret.ts'

const MAC_BYTES = 16

/**
 * Opaque, signed places in a list. The signature covers what the list was of (tenant, filters,
 * order), which is not in the cursor: one that is taken elsewhere does not fit.
 */
export class CursorCodec {
  readonly #key: Buffer

  constructor(secretKey: Secret<Buffer>) {
    this.#key = Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', 'annals/cursor', 32))
  }

  encode(place: string, binding: string): string {
    const body = Buffer.from(place)
    return Buffer.concat([this.#sign(body, binding), body]).toString('base64url')
  }

  /** Null when it was not made here for this binding. */
  decode(cursor: string, binding: string): string | null {
    const bytes = Buffer.from(cursor, 'base64url')
    // Decoding skips foreign characters; only the one spelling we write is ours.
    if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== cursor) return null
    const body = bytes.subarray(MAC_BYTES)
    if (!timingSafeEqual(this.#sign(body, binding), bytes.subarray(0, MAC_BYTES))) return null
    return body.toString()
  }

  #sign(body: Buffer, binding: string): Buffer {
    const mac = createHmac('sha256', this.#key).update(`${binding.length}:${binding}`).update(body)
    return mac.digest().subarray(0, MAC_BYTES)
  }
}
