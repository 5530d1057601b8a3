import { estimateExport } from '../../../outlet/export/preflight/preflight.ts'
import { defineRoute } from '../../define-route.ts'
import { preflightRecord } from '../../export/export-record.ts'
import { DashboardExportInput, DashboardPreflight } from '../../schema/dashboard/exports.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readDashboardExportRequest } from './export-request.ts'

/** POST /dashboard/exports/preflight: estimates the export that this body would create. */
export const preflightDashboardExport = defineRoute({
  method: 'POST',
  path: '/dashboard/exports/preflight',
  member: 'exports.create',
  summary: 'Preview an export',
  description:
    'Returns how many rows and bytes the export would have, and whether it exceeds the limits of the plan or the dashboard. Creates nothing.',
  body: DashboardExportInput,
  errors: ['plan_required', 'not_found', 'conflict'],
  response: DashboardPreflight,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports' | 'downloadBytesMax'>) =>
    async ({ viewer, body }) => {
      const exportRequest = await readDashboardExportRequest(deps, viewer, body)
      const preflight = await estimateExport(deps.exports, exportRequest)
      return {
        ...preflightRecord(preflight),
        fitsDownload: preflight.leastBytes <= deps.downloadBytesMax,
      }
    },
})
