import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { resetSecondFactor } from '../../../tenancy/sign-in/reset-second-factor.ts'
import { defineRoute } from '../../define-route.ts'
import { MemberParams } from '../../schema/dashboard/member.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getMemberToChange } from './member-resource.ts'

/** POST /dashboard/members/{userId}/reset-second-factor: for a member who has lost theirs. */
export const resetMemberSecondFactor = defineRoute({
  method: 'POST',
  path: '/dashboard/members/:userId/reset-second-factor',
  member: 'members.manage',
  summary: "Reset a member's second factor",
  description:
    "Deletes the member's second factor and recovery codes, and ends their sessions. They sign in with their password, and can set up a new second factor. Only an OWNER can reset that of an OWNER.",
  params: MemberParams,
  errors: ['conflict'],
  response: { 204: Type.Null({ description: 'The second factor is reset.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    await audited(deps, actorOf(request), async (trx, record, self) => {
      const member = await getMemberToChange(trx, self, request.params.userId)
      // Otherwise a stranger who finds the browser open could remove it without a code.
      if (member.id === self.userId) {
        throw new ApiError('conflict', {
          message: "You can't reset your own second factor. Turn it off in your account.",
        })
      }
      const entry = await resetSecondFactor(trx, { userId: member.id, email: member.email })
      if (!entry)
        throw new ApiError('conflict', { message: `${member.email} has no second factor.` })
      record(entry)
    })
    return null
  },
})
