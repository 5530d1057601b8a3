import { ApiError } from '../../../errors.ts'
import { parseId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { findMember, type Member } from '../../../tenancy/member/member-store.ts'
import { refuseRole } from '../../auth/require-session.ts'
import type { SessionActor } from '../member-caller.ts'

/**
 * Returns the member to change. Only an OWNER can change an OWNER. Call it in an audited change, whose lock
 * prevents concurrent changes to the company's members.
 */
export async function getMemberToChange(
  trx: Queryable,
  actor: SessionActor,
  id: string,
): Promise<Member> {
  const userId = parseId<'user'>(id)
  const member = userId && (await findMember(trx, { companyId: actor.companyId, userId }))
  if (!member) throw new ApiError('not_found')
  if (member.role === 'OWNER') refuseRole(actor, 'owners.manage')
  return member
}

export function memberRecord({ createdAt, lastSeenAt, ...member }: Member) {
  return {
    ...member,
    createdAt: createdAt.toISOString(),
    lastSeenAt: lastSeenAt?.toISOString() ?? null,
  }
}
