import assert from 'node:assert/strict'
import type { CompanyId, UserId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { AuditEntry } from '../../../tenancy/caller.ts'
import { applyGroups, isSameGrant } from '../../../tenancy/identity/group-grant.ts'
import { findIdentity, updateIdentity } from '../../../tenancy/identity/identity-store.ts'
import {
  countOwners,
  deleteMember,
  findMember,
  type Member,
  type MemberGrant,
  updateMemberGrant,
} from '../../../tenancy/member/member-store.ts'
import {
  deleteLinksCreatedBy,
  endLinksOfOldRole,
} from '../../../tenancy/member/one-time-link-store.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

type GroupDeps = Pick<DashboardDeps, 'clock' | 'logger'>

/**
 * Gives the member the role that their groups grant, or takes it away. Call it with the company locked, after
 * the identity is stored. Returns false if the member has no role left and was removed.
 */
export async function updateGroupRole(
  { clock, logger }: GroupDeps,
  trx: Queryable,
  {
    member: { companyId, userId },
    issuer,
    desired,
    isNew,
    record,
  }: {
    member: { companyId: CompanyId; userId: UserId }
    issuer: string
    desired: MemberGrant | null
    /** The account was created for the groups, so it has no role of its own. */
    isNew: boolean
    record: (entry: AuditEntry) => void
  },
): Promise<boolean> {
  const member = await findMember(trx, { companyId, userId })
  const identity = await findIdentity(trx, { userId, issuer })
  assert(member && identity, 'the member and the link were stored before')
  const before = isNew ? { granted: desired, own: null } : identity
  const { grant, state } = applyGroups(member, before, desired)
  const isLastOwner = member.role === 'OWNER' && (await countOwners(trx, companyId)) === 1
  const isKept = isLastOwner && grant?.role !== 'OWNER'
  // The company would have no owner. The next sign-in tries again.
  if (isKept) logger.warn({ event: 'oidc.last-owner-kept', companyId, userId })
  else if (!grant) {
    await removeMember(trx, { companyId, member, record })
    return false
  } else if (!isSameGrant(member, grant)) {
    await changeMember(trx, { companyId, member, grant, record })
  }
  const kept = isKept ? { granted: before.granted, own: before.own } : state
  await updateIdentity(trx, { userId, issuer, ...kept, nowMs: clock() })
  return true
}

type MemberChange = { companyId: CompanyId; member: Member; record: (entry: AuditEntry) => void }

async function removeMember(
  trx: Queryable,
  { companyId, member, record }: MemberChange,
): Promise<void> {
  const { id, email, role } = member
  await deleteMember(trx, id)
  const endedLinks = await deleteLinksCreatedBy(trx, { companyId, userId: id })
  const metadata = { email, role, endedLinks, via: 'GROUP' }
  record({ action: 'MEMBER_REMOVED', resource: { type: 'user', id }, metadata })
}

async function changeMember(
  trx: Queryable,
  { companyId, member, grant, record }: MemberChange & { grant: MemberGrant },
): Promise<void> {
  const { id, email } = member
  await updateMemberGrant(trx, id, grant)
  if (grant.role !== member.role) {
    await endLinksOfOldRole(trx, { companyId, userId: id, role: grant.role })
  }
  const before = { role: member.role, workspaceIds: member.workspaceIds }
  const after = { role: grant.role, workspaceIds: grant.workspaceIds?.toSorted() ?? null }
  const metadata = { email, before, after, via: 'GROUP' }
  record({ action: 'MEMBER_CHANGED', resource: { type: 'user', id }, metadata })
}
