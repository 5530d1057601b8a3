import { ApiError } from '../../../errors.ts'
import { parseId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg.ts'
import { lockCompany } from '../../../tenancy/company-store.ts'
import { findMember, type Member } from '../../../tenancy/member-store.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { refuseRole } from '../../auth/require-session.ts'

/**
 * Locks the company's members, and looks again at who asks: he may have been removed or made less
 * since his request came in. Of two who remove each other at the same moment one stays.
 */
export async function lockMembers(trx: Queryable, viewer: Viewer): Promise<Viewer> {
  await lockCompany(trx, viewer.companyId)
  const self = await findMember(trx, viewer)
  if (!self) throw new ApiError('not_signed_in')
  const current = { ...viewer, role: self.role }
  refuseRole(current, 'members.manage')
  return current
}

/** Whom a change is about. Only an owner changes an owner. */
export async function lockMember(
  trx: Queryable,
  viewer: Viewer,
  id: string,
): Promise<{ self: Viewer; member: Member }> {
  const self = await lockMembers(trx, viewer)
  const userId = parseId<'user'>(id)
  const member = userId && (await findMember(trx, { companyId: self.companyId, userId }))
  if (!member) throw new ApiError('not_found')
  if (member.role === 'OWNER') refuseRole(self, 'owners.manage')
  return { self, member }
}

export function memberRecord({ createdAt, lastSeenAt, ...member }: Member) {
  return {
    ...member,
    createdAt: createdAt.toISOString(),
    lastSeenAt: lastSeenAt?.toISOString() ?? null,
  }
}
