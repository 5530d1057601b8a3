import { listWorkspaceSummaries } from '../../../tenancy/workspace/workspace-summary-store.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceList } from '../../schema/dashboard/company.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { workspaceRecord } from '../../workspace-record.ts'

/** GET /dashboard/workspaces: those that the member can see, sorted by name. */
export const listWorkspaces = defineRoute({
  method: 'GET',
  path: '/dashboard/workspaces',
  member: 'company.read',
  summary: 'List workspaces',
  description:
    'Returns the workspaces that the member can see, by name. A company can have up to 100, plus the system workspace.',
  response: WorkspaceList,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock'>) =>
    async ({ viewer }, reply) => {
      const workspaces = await listOrReportDrift(reply, () =>
        listWorkspaceSummaries(deps.db, viewer, new Date(deps.clock())),
      )
      return { workspaces: workspaces.map(workspaceRecord) }
    },
})
