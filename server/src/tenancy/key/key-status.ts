export const KEY_STATUSES = ['ACTIVE', 'ROTATING', 'EXPIRED', 'REVOKED'] as const
export type KeyStatus = (typeof KEY_STATUSES)[number]

/**
 * The status of a key at a given time. ACTIVE and ROTATING keys work. A replaced key past its grace period
 * is REVOKED. Revocation takes precedence over expiry, because the key may be in the wrong hands.
 */
export function keyStatusAt(
  key: { revokedAt: Date | null; graceUntil: Date | null; expiresAt: Date | null },
  nowMs: number,
): KeyStatus {
  if (key.revokedAt !== null) return 'REVOKED'
  if (key.graceUntil !== null && key.graceUntil.getTime() <= nowMs) return 'REVOKED'
  if (key.expiresAt !== null && key.expiresAt.getTime() <= nowMs) return 'EXPIRED'
  return key.graceUntil === null ? 'ACTIVE' : 'ROTATING'
}
