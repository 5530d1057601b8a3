import { newId, type UserId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import { consumeLink, deleteResets, type LinkToken, type OpenLink } from './one-time-link-store.ts'
import { endSessions } from './session-store.ts'
import { giveWorkspaces, insertUser, setPasswordHash } from './user-store.ts'

export type AcceptedLink = OpenLink & { userId: UserId; endedSessions: number }

/**
 * Does what the link is for. It is used up in the same transaction: where the rest fails, it can be
 * used again. Null when it is no link any more.
 */
export async function acceptLink(
  trx: Queryable,
  { token, passwordHash, nowMs }: { token: LinkToken; passwordHash: string; nowMs: number },
): Promise<AcceptedLink | null> {
  const link = await consumeLink(trx, token, nowMs)
  if (!link) return null
  if (link.kind === 'RESET') return await resetPassword(trx, link, passwordHash)
  const userId = newId<'user'>(nowMs)
  const { companyId, email, role, workspaceIds } = link
  await insertUser(trx, { id: userId, companyId, email, passwordHash, role })
  await giveWorkspaces(trx, { companyId, userId, workspaceIds })
  return { ...link, userId, endedSessions: 0 }
}

/** Whoever knew the old password, or has another link, is out. */
async function resetPassword(
  trx: Queryable,
  link: OpenLink & { kind: 'RESET' },
  passwordHash: string,
): Promise<AcceptedLink | null> {
  const { userId, companyId } = link
  if (!(await setPasswordHash(trx, { userId, passwordHash }))) return null
  await deleteResets(trx, { companyId, userId })
  return { ...link, endedSessions: await endSessions(trx, { userId }) }
}
