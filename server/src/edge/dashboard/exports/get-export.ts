import { defineRoute } from '../../define-route.ts'
import { DashboardExport } from '../../schema/dashboard/exports.ts'
import { ExportParams } from '../../schema/export.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardExport, getVisibleExport } from './visible-export.ts'

/** GET /dashboard/exports/{jobId}: the job's progress, and what went wrong. */
export const getDashboardExport = defineRoute({
  method: 'GET',
  path: '/dashboard/exports/:jobId',
  member: 'exports.read',
  summary: 'Get an export',
  description: 'Returns the export job with its status and result.',
  params: ExportParams,
  response: DashboardExport,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer, params }) =>
      await dashboardExport(deps.db, viewer, await getVisibleExport(deps.db, viewer, params.jobId)),
})
