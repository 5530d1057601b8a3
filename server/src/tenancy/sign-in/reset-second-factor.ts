import type { UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { AuditEntry } from '../caller.ts'
import { deleteSecondFactor } from './second-factor-store.ts'
import { deleteSessions } from './session-store.ts'
import { deleteChallenges } from './sign-in-challenge-store.ts'

/**
 * Removes the second factor of a member who lost it, and ends their sessions, because the lost device may be
 * signed in. Returns the audit entry, or null if there is no second factor.
 */
export async function resetSecondFactor(
  trx: Queryable,
  { userId, email }: { userId: UserId; email: string },
): Promise<AuditEntry | null> {
  if (!(await deleteSecondFactor(trx, userId))) return null
  await deleteChallenges(trx, userId)
  const endedSessions = await deleteSessions(trx, { userId })
  const resource = { type: 'user', id: userId }
  return { action: 'SECOND_FACTOR_RESET', resource, metadata: { email, endedSessions } }
}
