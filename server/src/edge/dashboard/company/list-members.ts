import { Type } from 'typebox'
import * as memberStore from '../../../tenancy/member/member-store.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText, listJson } from '../../page-json.ts'
import { MemberList } from '../../schema/dashboard/member.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { memberRecord } from './member-resource.ts'

/** GET /dashboard/members: oldest first. */
export const listMembers = defineRoute({
  method: 'GET',
  path: '/dashboard/members',
  member: 'members.read',
  summary: 'List members',
  description: 'Returns the members of the company.',
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(MemberList),
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer }, reply) => {
      const members = await listOrReportDrift(reply, () =>
        memberStore.listCompanyMembers(deps.db, viewer.companyId),
      )
      asJsonText(reply)
      return await listJson('members', members, { record: memberRecord, owner: viewer.companyId })
    },
})
