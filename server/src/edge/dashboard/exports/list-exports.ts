import { Type } from 'typebox'
import { listVisibleJobs } from '../../../outlet/export/job/visible-job-store.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { readExportPage } from '../../export/export-page.ts'
import { asJsonText, listJson } from '../../page-json.ts'
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
    'Returns export jobs, newest first, including those created with keys. An ANALYST or VIEWER sees their own jobs and those of their workspaces. A page ends early if the filters of its jobs are large. A cursor is only valid for the same member, `workspaceId` and `status`.',
  query: DashboardExportQuery,
  errors: ['not_found'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(DashboardExportPage),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'cursors'>) =>
    async ({ viewer, query }, reply) => {
      const empty = { data: [], nextCursor: null }
      const { data, nextCursor } = await readOrReportDrift(reply, empty, async () => {
        const workspaceId =
          query.workspaceId === undefined
            ? null
            : await visibleWorkspace(deps.db, viewer, query.workspaceId)
        const whose = `dashboard/${viewer.userId}/${workspaceId ?? 'all'}`
        const { jobs, nextCursor } = await readExportPage(deps.cursors, whose, query, (page) =>
          listVisibleJobs(deps.db, viewer, page, workspaceId),
        )
        return { data: await dashboardExports(deps.db, viewer, jobs), nextCursor }
      })
      asJsonText(reply)
      return await listJson('data', data, {
        record: (job) => job,
        owner: viewer.companyId,
        rest: { nextCursor },
      })
    },
})
