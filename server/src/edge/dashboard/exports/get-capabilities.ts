import { EXPORT_FORMATS, EXPORT_SOURCES } from '../../../outlet/export/job/export-job.ts'
import { PLAN_TERMS } from '../../../tenancy/plans.ts'
import { defineRoute } from '../../define-route.ts'
import { ExportCapabilities } from '../../schema/dashboard/exports.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { ExportProbe } from './export-probe.ts'

/** GET /dashboard/exports/capabilities: what works right now, and what the plan allows. */
export const getExportCapabilities = defineRoute({
  method: 'GET',
  path: '/dashboard/exports/capabilities',
  member: 'exports.read',
  summary: 'Get export options',
  description:
    'Checks whether a filtered export of hot events works. The result is cached for a few seconds.',
  response: ExportCapabilities,
  handle: (
    deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports' | 'downloadBytesMax' | 'hasArchive'>,
  ) => {
    const probe = new ExportProbe(deps)
    return async ({ viewer }) => {
      const { exportRowsMax } = PLAN_TERMS[viewer.plan]
      const reason =
        exportRowsMax === null
          ? `The ${viewer.plan} plan doesn't include exports. Upgrade to STARTER or higher.`
          : await probe.reasonAgainst(viewer)
      return {
        filteredHot: reason === null,
        reason,
        sources: [...EXPORT_SOURCES],
        formats: [...EXPORT_FORMATS],
        rowLimit: exportRowsMax === null ? null : String(exportRowsMax),
        downloadBytesMax: String(deps.downloadBytesMax),
        evidencePacks: deps.hasArchive,
      }
    }
  },
})
