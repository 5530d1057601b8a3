import { Type } from 'typebox'
import * as invitationStore from '../../../tenancy/member/invitation-store.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText, listJson } from '../../page-json.ts'
import { InvitationList } from '../../schema/dashboard/member.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'

/** GET /dashboard/invitations: the open invitations, newest first. Their links aren't stored. */
export const listInvitations = defineRoute({
  method: 'GET',
  path: '/dashboard/invitations',
  member: 'members.read',
  summary: 'List invitations',
  description: 'Returns the open invitations of the company.',
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(InvitationList),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock'>) =>
    async ({ viewer: { companyId } }, reply) => {
      const now = new Date(deps.clock())
      const invitations = await listOrReportDrift(reply, () =>
        invitationStore.listOpenInvitations(deps.db, { companyId, now }),
      )
      asJsonText(reply)
      return await listJson('invitations', invitations, {
        record: ({ createdAt, expiresAt, ...invitation }) => ({
          ...invitation,
          createdAt: createdAt.toISOString(),
          expiresAt: expiresAt.toISOString(),
        }),
        owner: companyId,
      })
    },
})
