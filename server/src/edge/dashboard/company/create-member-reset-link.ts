import { ApiError } from '../../../errors.ts'
import { insertResetLink } from '../../../tenancy/member/one-time-link-store.ts'
import { defineRoute } from '../../define-route.ts'
import { MemberParams, ResetLink } from '../../schema/dashboard/member.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { linkText } from '../link-text.ts'
import { getMemberToChange } from './member-resource.ts'

/** POST /dashboard/members/{userId}/reset-link: for a member who has lost their password. */
export const createMemberResetLink = defineRoute({
  method: 'POST',
  path: '/dashboard/members/:userId/reset-link',
  member: 'members.manage',
  summary: 'Create a password reset link',
  description: 'The current password works until the link is used.',
  params: MemberParams,
  errors: ['conflict'],
  response: { 201: ResetLink },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'publicUrl'>) => async (request) => {
    const { params, server } = request
    const created = await audited(deps, actorOf(request), async (trx, record, self) => {
      const member = await getMemberToChange(trx, self, params.userId)
      // Otherwise a stranger who finds the browser open could take over the account.
      if (member.id === self.userId) {
        throw new ApiError('conflict', {
          message: "You can't create a reset link for yourself. Change your password instead.",
        })
      }
      record({
        action: 'PASSWORD_RESET_REQUESTED',
        resource: { type: 'user', id: member.id },
        metadata: { email: member.email },
      })
      return await insertResetLink(trx, {
        companyId: self.companyId,
        userId: member.id,
        email: member.email,
        createdBy: self.userId,
        nowMs: deps.clock(),
      })
    })
    const link = linkText(deps, server, created.token)
    return { link, expiresAt: created.expiresAt.toISOString() }
  },
})
