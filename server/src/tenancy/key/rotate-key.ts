import { ApiError } from '../../errors.ts'
import type { CompanyId, KeyId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import {
  type CompanyKey,
  getCompanyKey,
  refuseTooManyRotating,
  markKeyReplaced,
  markKeyRevoked,
} from './company-key-store.ts'
import { lockCompany } from '../company-store.ts'
import { issueKey } from './issue-key.ts'

/**
 * Replaces a key with a new one of the same name, scope and permissions. The old key works until its grace period ends,
 * or is revoked at once if there is none. Call it inside a transaction.
 */
export async function rotateKey(
  db: Queryable,
  { companyId, keyId }: { companyId: CompanyId; keyId: KeyId },
  /** Without `expiresAt`, the new key gets the same lifetime as the old one. */
  options: { graceMs: number; expiresAt?: Date | null },
  nowMs: number,
): Promise<{ id: KeyId; text: string; replaced: CompanyKey }> {
  await lockCompany(db, companyId)
  const replaced = await getCompanyKey(db, { companyId, keyId })
  refuseReplaced(replaced)
  const now = new Date(nowMs)
  const { name, workspaceId, permissions } = replaced
  if (options.graceMs > 0) await refuseTooManyRotating(db, { companyId, workspaceId }, now)
  // Retires the old key before counting the new one, so that a workspace at its limit can rotate keys.
  const replacement = { replacedAt: now, graceUntil: new Date(nowMs + options.graceMs) }
  const isRetired =
    options.graceMs === 0
      ? await markKeyRevoked(db, { companyId, keyId }, now)
      : await markKeyReplaced(db, { companyId, keyId }, replacement)
  if (!isRetired) throw new ApiError('conflict', { message: REVOKED })
  const expiresAt =
    options.expiresAt === undefined ? expiryWithSameLifetime(replaced, nowMs) : options.expiresAt
  const fresh = { companyId, workspaceId, name, permissions, expiresAt }
  const issued = await issueKey(db, fresh, nowMs)
  return { ...issued, replaced }
}

/** Expired keys can be rotated: the error for an expired key suggests it. */
function refuseReplaced({ revokedAt, graceUntil }: CompanyKey): void {
  if (revokedAt !== null) {
    throw new ApiError('conflict', { message: REVOKED })
  }
  if (graceUntil !== null) {
    throw new ApiError('conflict', {
      message: 'This key was already replaced. Rotate the key that replaced it.',
    })
  }
}

function expiryWithSameLifetime({ createdAt, expiresAt }: CompanyKey, nowMs: number): Date | null {
  if (expiresAt === null) return null
  const lifeMs = Math.max(LIFE_MS_MIN, expiresAt.getTime() - createdAt.getTime())
  return new Date(Math.min(nowMs + lifeMs, LATEST_MS))
}

const REVOKED = 'This key is revoked. Create a new one.'
/** `createdAt` and `expiresAt` come from different clocks, so their difference could even be negative. */
const LIFE_MS_MIN = 60_000
/** The latest time that RFC 3339 can express. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z')
