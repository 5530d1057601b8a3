export const KEY_STATUSES = ['ACTIVE', 'ROTATING', 'EXPIRED', 'REVOKED'] as const
export type KeyStatus = (typeof KEY_STATUSES)[number]

/**
 * What a key is at a time. The first two work. A replaced key whose grace time is over counts as
 * revoked: whoever holds it now may not be whom it was made for, so revocation is told before expiry.
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
