import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { ApiError } from '../errors.ts'
import type { Secret } from './secret/secret.ts'

const MAC_BYTES = 16

/**
 * Opaque, signed positions in a list. The signature also covers the tenant, filters and order of the list,
 * which the cursor itself doesn't contain, so a cursor is invalid for any other list.
 */
export class CursorCodec {
  readonly #key: Buffer

  constructor(secretKey: Secret<Buffer>) {
    this.#key = Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', 'annals/cursor', 32))
  }

  encode(position: string, binding: string): string {
    const body = Buffer.from(position)
    return Buffer.concat([this.#sign(body, binding), body]).toString('base64url')
  }

  /** The position of a request's cursor, or null without one. Throws if the cursor is for another list. */
  read(cursor: string | null | undefined, binding: string): string | null {
    if (cursor === null || cursor === undefined) return null
    const position = this.decode(cursor, binding)
    if (position === null) throw new ApiError('invalid_cursor')
    return position
  }

  /** Null if this service didn't create the cursor for this binding. */
  decode(cursor: string, binding: string): string | null {
    const bytes = Buffer.from(cursor, 'base64url')
    // Decoding ignores invalid characters, so accept only the exact encoding that we write.
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
