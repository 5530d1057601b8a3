import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { listWorkspaceSummaries } from '../../../tenancy/workspace-summary-store.ts'
import { WorkspaceList } from '../../schema/dashboard/company.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { workspaceRecord } from './workspace-record.ts'

/** GET /dashboard/workspaces: those that the member can see, sorted by name. */
export const listWorkspaces =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/workspaces',
      {
        ...deps.signedIn('company.read'),
        schema: {
          operationId: 'listWorkspaces',
          summary: 'List workspaces',
          description:
            'Returns the workspaces that the member can see, by name. A company can have up to 100, plus the system workspace.',
          tags: ['Company'],
          response: { 200: WorkspaceList },
        },
      },
      async ({ viewer }, reply) => {
        const workspaces = await listOrReportDrift(reply, 'workspace', () =>
          listWorkspaceSummaries(deps.db, viewer, new Date(deps.clock())),
        )
        return { workspaces: workspaces.map(workspaceRecord) }
      },
    )
  }
