import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { refuseLastOwner } from '../../../tenancy/member/member-rules.ts'
import { deleteMember } from '../../../tenancy/member/member-store.ts'
import { deleteLinksCreatedBy } from '../../../tenancy/member/one-time-link-store.ts'
import { defineRoute } from '../../define-route.ts'
import { MemberParams } from '../../schema/dashboard/member.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getMemberToChange } from './member-resource.ts'

/** DELETE /dashboard/members/{userId}: removes a member and ends their sessions. */
export const removeMember = defineRoute({
  method: 'DELETE',
  path: '/dashboard/members/:userId',
  member: 'members.manage',
  summary: 'Remove a member',
  description:
    "Deletes the member's sessions, private views, and links that they created for others. What they shared remains, and keys keep working.",
  params: MemberParams,
  errors: ['conflict'],
  response: { 204: Type.Null({ description: 'The member is removed.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { params } = request
    await audited(deps, actorOf(request), async (trx, record, self) => {
      const member = await getMemberToChange(trx, self, params.userId)
      await refuseLastOwner(trx, self.companyId, member)
      if (member.id === self.userId) {
        throw new ApiError('conflict', {
          message: "You can't remove yourself. Ask another owner or admin.",
        })
      }
      await deleteMember(trx, member.id)
      const endedLinks = await deleteLinksCreatedBy(trx, {
        companyId: self.companyId,
        userId: member.id,
      })
      record({
        action: 'MEMBER_REMOVED',
        resource: { type: 'user', id: member.id },
        metadata: { email: member.email, role: member.role, endedLinks },
      })
    })
    return null
  },
})
