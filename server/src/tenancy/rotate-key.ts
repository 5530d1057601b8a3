import { ApiError } from '../errors.ts'
import type { CompanyId, KeyId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import {
  type CompanyKey,
  getCompanyKey,
  refuseTooManyRotating,
  retireKey,
  revokeKey,
} from './company-key-store.ts'
import { lockCompany } from './company-store.ts'
import { issueKey } from './issue-key.ts'

/**
 * Replaces a key by a new one of the same name and scope. The old one works until its grace time ends,
 * or ends at once when there is none. Call it inside a transaction.
 */
export async function rotateKey(
  db: Queryable,
  { companyId, keyId }: { companyId: CompanyId; keyId: KeyId },
  /** No `expiresAt`: the new key lives as long as the old one was meant to. */
  options: { graceMs: number; expiresAt?: Date | null },
  nowMs: number,
): Promise<{ id: KeyId; text: string; replaced: CompanyKey }> {
  await lockCompany(db, companyId)
  const replaced = await getCompanyKey(db, { companyId, keyId })
  refuseReplaced(replaced)
  const now = new Date(nowMs)
  const { name, workspaceId } = replaced
  if (options.graceMs > 0) await refuseTooManyRotating(db, { companyId, workspaceId }, now)
  // Retired before its successor is counted, so that a workspace with all its keys can rotate them.
  const isRetired =
    options.graceMs === 0
      ? await revokeKey(db, { companyId, keyId }, now)
      : await retireKey(db, { companyId, keyId }, new Date(nowMs + options.graceMs))
  if (!isRetired) throw new ApiError('conflict', { message: REVOKED })
  const expiresAt = options.expiresAt === undefined ? sameLife(replaced, nowMs) : options.expiresAt
  const issued = await issueKey(db, { companyId, workspaceId, name, expiresAt }, nowMs)
  return { ...issued, replaced }
}

/** An expired key may be rotated: its holder is told to. */
function refuseReplaced({ revokedAt, graceUntil }: CompanyKey): void {
  if (revokedAt !== null) {
    throw new ApiError('conflict', { message: REVOKED })
  }
  if (graceUntil !== null) {
    throw new ApiError('conflict', {
      message: 'This key was replaced already. Rotate the one that replaced it.',
    })
  }
}

function sameLife({ createdAt, expiresAt }: CompanyKey, nowMs: number): Date | null {
  if (expiresAt === null) return null
  const lifeMs = Math.max(LIFE_MS_MIN, expiresAt.getTime() - createdAt.getTime())
  return new Date(Math.min(nowMs + lifeMs, LATEST_MS))
}

const REVOKED = 'This key is revoked. Create a new one.'
/** Clocks of two machines made `createdAt` and `expiresAt`; a key that is born dead helps nobody. */
const LIFE_MS_MIN = 60_000
/** The last instant that RFC 3339 can write. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z')
