import assert from 'node:assert/strict'
import { newId, type UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { consumeLink, deleteResets, type LinkToken, type OpenLink } from './one-time-link-store.ts'
import { deleteSessions } from '../sign-in/session-store.ts'
import { deleteChallenges } from '../sign-in/sign-in-challenge-store.ts'
import { grantWorkspaces, insertUser, setPasswordHash } from './user-store.ts'

type AcceptedLink = OpenLink & { userId: UserId; endedSessions: number }

/**
 * Creates the account or resets the password. Without a password, only an invitation is accepted. The link is
 * consumed in the same transaction, so it can be used again if anything fails. Returns null if the link is
 * no longer valid.
 */
export async function acceptLink(
  trx: Queryable,
  { token, passwordHash, nowMs }: { token: LinkToken; passwordHash: string | null; nowMs: number },
): Promise<AcceptedLink | null> {
  const link = await consumeLink(trx, token, nowMs)
  if (!link) return null
  if (link.kind === 'RESET') {
    assert(passwordHash !== null, 'a reset link sets a password')
    return await resetPassword(trx, link, passwordHash)
  }
  const userId = newId<'user'>(nowMs)
  const { companyId, email, role, workspaceIds } = link
  await insertUser(trx, { id: userId, companyId, email, passwordHash, role })
  await grantWorkspaces(trx, { companyId, userId, workspaceIds })
  return { ...link, userId, endedSessions: 0 }
}

/** Also ends all sessions and deletes other reset links: the old password may have been stolen. */
async function resetPassword(
  trx: Queryable,
  link: OpenLink & { kind: 'RESET' },
  passwordHash: string,
): Promise<AcceptedLink | null> {
  const { userId, companyId } = link
  if (!(await setPasswordHash(trx, { userId, passwordHash }))) return null
  await deleteResets(trx, { companyId, userId })
  await deleteChallenges(trx, userId)
  return { ...link, endedSessions: await deleteSessions(trx, { userId }) }
}
