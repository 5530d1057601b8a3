import { readGrant, refuseLastOwner } from '../../../tenancy/member/member-rules.ts'
import * as memberStore from '../../../tenancy/member/member-store.ts'
import { endLinksOfOldRole } from '../../../tenancy/member/one-time-link-store.ts'
import { refuseRole } from '../../auth/require-session.ts'
import { defineRoute } from '../../define-route.ts'
import { MemberChange, MemberParams, MemberRecord } from '../../schema/dashboard/member.ts'
import { actorOf, audited } from '../member-caller.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getMemberToChange, memberRecord } from './member-resource.ts'

/** PATCH /dashboard/members/{userId}: changes a member's role or workspaces. */
export const updateMember = defineRoute({
  method: 'PATCH',
  path: '/dashboard/members/:userId',
  member: 'members.manage',
  summary: 'Update a member',
  description:
    "Takes effect on the member's next request. A new role invalidates the member's password reset links. A lower role also invalidates links that the member created for others. Only an OWNER can make or change an OWNER, and the last OWNER can't be changed.",
  params: MemberParams,
  body: MemberChange,
  errors: ['conflict'],
  response: MemberRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { params, body } = request
    return await audited(deps, actorOf(request), async (trx, record, self) => {
      const member = await getMemberToChange(trx, self, params.userId)
      const role = body.role ?? member.role
      if (role === 'OWNER') refuseRole(self, 'owners.manage')
      else await refuseLastOwner(trx, self.companyId, member)
      const isWhole = memberStore.hasCompanyAccess(role)
      const workspaceIds = body.workspaceIds ?? (isWhole ? [] : (member.workspaceIds ?? []))
      const grant = await readGrant(trx, self.companyId, { role, workspaceIds })
      const given = grant.workspaceIds?.toSorted() ?? null
      const { role: oldRole, workspaceIds: oldWorkspaceIds } = member
      const changed = changedFields(
        { role: oldRole, workspaceIds: oldWorkspaceIds },
        { role, workspaceIds: given },
      )
      if (!changed) return memberRecord(member)
      await memberStore.updateMemberGrant(trx, member.id, grant)
      if (role !== member.role) {
        await endLinksOfOldRole(trx, { companyId: self.companyId, userId: member.id, role })
      }
      record({
        action: 'MEMBER_CHANGED',
        resource: { type: 'user', id: member.id },
        metadata: { email: member.email, ...changed },
      })
      return memberRecord({ ...member, role, workspaceIds: given })
    })
  },
})
