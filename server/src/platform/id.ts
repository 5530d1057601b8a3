import assert from 'node:assert/strict'
import { randomFillSync } from 'node:crypto'
import { systemClock } from './time/clock.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** The brand distinguishes ids from other strings. Only parsing at the edge creates one. */
declare const brand: unique symbol
export type Id<Name extends string> = string & { readonly [brand]: Name }

export type CompanyId = Id<'company'>
export type WorkspaceId = Id<'workspace'>
export type ProjectId = Id<'project'>
export type UserId = Id<'user'>
export type KeyId = Id<'key'>

/** The id in lowercase, or null if the text isn't a plain UUID (`urn:uuid:` and braces are not accepted). */
export function parseId<Name extends string>(text: string): Id<Name> | null {
  const lower = text.toLowerCase()
  return isId<Name>(lower) ? lower : null
}

/** For values from our own tables or generator. Anything else is a bug on our side. */
export function assertId<Name extends string>(text: string): Id<Name> {
  assert(isId<Name>(text), 'an id of ours is a lower-case uuid')
  return text
}

function isId<Name extends string>(text: string): text is Id<Name> {
  return UUID.test(text)
}

const POOL_BYTES = 4_096
const pool = Buffer.allocUnsafe(POOL_BYTES)
let poolUsed = POOL_BYTES

/** Random bytes from a pool, because a system call per id would cost more than the id itself. */
function drawBytes(count: number): Buffer {
  if (poolUsed + count > POOL_BYTES) {
    randomFillSync(pool)
    poolUsed = 0
  }
  poolUsed += count
  return pool.subarray(poolUsed - count, poolUsed)
}

/**
 * A UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits. Times before 1970, which a wrong clock
 * can show, become 0 because a UUID can't represent them.
 */
export function newId<Name extends string>(nowMs: number = systemClock()): Id<Name> {
  const random = drawBytes(10).toString('hex')
  const time = Math.max(0, nowMs).toString(16).padStart(12, '0')
  // The variant's two bits are fixed to 10, so that digit is one of 8, 9, a, b.
  const variant = '89ab'.charAt(Number.parseInt(random.charAt(3), 16) & 3)
  return assertId(
    `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`,
  )
}

/** The time of a UUIDv7, in milliseconds. */
export function idTimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** Random hex digits from the same pool, two per byte. */
export function randomHex(bytes: number): string {
  return drawBytes(bytes).toString('hex')
}

/** A random number from the same pool, at least 0 and below 1. */
export function randomFraction(): number {
  return drawBytes(4).readUInt32BE() / 2 ** 32
}
