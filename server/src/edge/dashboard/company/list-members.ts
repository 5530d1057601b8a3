import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import * as memberStore from '../../../tenancy/member-store.ts'
import { MemberList } from '../../schema/dashboard/member.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { memberRecord } from './member-resource.ts'

/** GET /dashboard/members: oldest first. */
export const listMembers =
  (deps: Pick<DashboardDeps, 'db' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/members',
      {
        ...deps.signedIn('members.read'),
        schema: {
          operationId: 'listMembers',
          summary: 'List members',
          description: 'Returns the members of the company.',
          tags: ['Company'],
          response: { 200: MemberList },
        },
      },
      async ({ viewer }, reply) => {
        const members = await listOrReportDrift(reply, 'app_user', () =>
          memberStore.listCompanyMembers(deps.db, viewer.companyId),
        )
        return { members: members.map(memberRecord) }
      },
    )
  }
