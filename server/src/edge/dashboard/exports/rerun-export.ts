import { rerunExportJob } from '../../../outlet/export/exporter.ts'
import { defineRoute } from '../../define-route.ts'
import { addJobAs } from '../../export/export-actions.ts'
import { DashboardExport } from '../../schema/dashboard/exports.ts'
import { ExportParams } from '../../schema/export.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardExport, getVisibleExport } from './visible-export.ts'

/** POST /dashboard/exports/{jobId}/rerun: creates a new job with the same rows. */
export const rerunDashboardExport = defineRoute({
  method: 'POST',
  path: '/dashboard/exports/:jobId/rerun',
  member: 'exports.create',
  summary: 'Rerun an export',
  description: 'Creates a job with the same rows, whatever the status of the original job.',
  params: ExportParams,
  errors: ['plan_required', 'conflict'],
  response: {
    201: {
      ...DashboardExport,
      description: 'The new export job. Download it within seven days.',
    },
  },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports'>) => async (request) => {
    const { viewer, params } = request
    const job = await getVisibleExport(deps.db, viewer, params.jobId)
    // Keep the job's workspace, so that everyone who can see the first job can see this one.
    const by = {
      plan: viewer.plan,
      workspaceId: job.workspaceId,
      createdBy: viewer.userId,
    }
    const add = addJobAs(memberCaller(deps, request), deps, 'EXPORT_RERUN', { rerunOf: job.id })
    const again = await rerunExportJob(deps.exports, job, by, add)
    return await dashboardExport(deps.db, viewer, again)
  },
})
