import { defineRoute } from '../../define-route.ts'
import { cancelJob } from '../../export/export-actions.ts'
import { DashboardExport } from '../../schema/dashboard/exports.ts'
import { ExportParams } from '../../schema/export.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardExport, getVisibleExport } from './visible-export.ts'

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
    await cancelJob(deps, memberCaller(deps, request), job)
    const canceled = await getVisibleExport(deps.db, viewer, params.jobId)
    return await dashboardExport(deps.db, viewer, canceled)
  },
})
