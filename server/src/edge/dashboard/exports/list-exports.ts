import { listVisibleJobs } from '../../../outlet/export/visible-job-store.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { readExportPage } from '../../export/export-page.ts'
import { DashboardExportPage, DashboardExportQuery } from '../../schema/dashboard/exports.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { dashboardExports } from './visible-export.ts'

/** GET /dashboard/exports: newest first. */
export const listDashboardExports = defineRoute({
  method: 'GET',
  path: '/dashboard/exports',
  member: 'exports.read',
  summary: 'List exports',
  description:
    'Returns export jobs, newest first, including those created with keys. An ANALYST or VIEWER sees their own jobs and those of their workspaces. A cursor is only valid for the same member, `workspaceId` and `status`.',
  query: DashboardExportQuery,
  errors: ['not_found'],
  response: DashboardExportPage,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'cursors'>) =>
    async ({ viewer, query }, reply) =>
      await readOrReportDrift(reply, { data: [], nextCursor: null }, async () => {
        const workspaceId =
          query.workspaceId === undefined
            ? null
            : await visibleWorkspace(deps.db, viewer, query.workspaceId)
        const whose = `dashboard/${viewer.userId}/${workspaceId ?? 'all'}`
        const { jobs, nextCursor } = await readExportPage(deps.cursors, whose, query, (page) =>
          listVisibleJobs(deps.db, viewer, page, workspaceId),
        )
        return { data: await dashboardExports(deps.db, viewer, jobs), nextCursor }
      }),
})
