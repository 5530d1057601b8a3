import { cancelExportJob } from '../../../outlet/export/exporter.ts'
import { defineRoute } from '../../define-route.ts'
import { DashboardExport } from '../../schema/dashboard/exports.ts'
import { ExportParams } from '../../schema/export.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardExport, getVisibleExport, exportResource } from './visible-export.ts'

/** POST /dashboard/exports/{jobId}/cancel: cancels the job and its running downloads. */
export const cancelDashboardExport = defineRoute({
  method: 'POST',
  path: '/dashboard/exports/:jobId/cancel',
  member: 'exports.create',
  summary: 'Cancel an export',
  description: 'Running downloads are cut within two seconds.',
  params: ExportParams,
  errors: ['conflict'],
  response: DashboardExport,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, params } = request
    const job = await getVisibleExport(deps.db, viewer, params.jobId)
    await audited(deps, actorOf(request), async (trx, note) => {
      if (!(await cancelExportJob(trx, job, new Date(deps.clock())))) return
      note({
        action: 'EXPORT_CANCELED',
        resource: exportResource(job),
        metadata: { status: job.status, rows: job.rowsExported },
      })
    })
    const canceled = await getVisibleExport(deps.db, viewer, params.jobId)
    return await dashboardExport(deps.db, viewer, canceled)
  },
})
