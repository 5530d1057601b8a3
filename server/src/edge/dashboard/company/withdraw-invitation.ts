import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { parseId } from '../../../platform/id.ts'
import { deleteInvitation } from '../../../tenancy/member/invitation-store.ts'
import { refuseRole } from '../../auth/require-session.ts'
import { defineRoute } from '../../define-route.ts'
import { InvitationParams } from '../../schema/dashboard/member.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

/** DELETE /dashboard/invitations/{invitationId}: invalidates the invitation's link. */
export const withdrawInvitation = defineRoute({
  method: 'DELETE',
  path: '/dashboard/invitations/:invitationId',
  member: 'members.manage',
  summary: 'Withdraw an invitation',
  description: 'The link stops working. Only an OWNER can withdraw the invitation of an OWNER.',
  params: InvitationParams,
  response: { 204: Type.Null({ description: 'The invitation is withdrawn.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { companyId } = request.viewer
    const invitationId = parseId<'link'>(request.params.invitationId)
    if (invitationId === null) throw new ApiError('not_found')
    await audited(deps, actorOf(request), async (trx, record, actor) => {
      const { email, role } = await deleteInvitation(trx, { companyId, invitationId })
      if (role === 'OWNER') refuseRole(actor, 'owners.manage')
      record({
        action: 'INVITATION_WITHDRAWN',
        resource: { type: 'invitation', id: invitationId },
        metadata: { email, role },
      })
    })
    return null
  },
})
