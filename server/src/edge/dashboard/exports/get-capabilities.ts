import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { EXPORT_FORMATS, EXPORT_SOURCES } from '../../../outlet/export/export-job.ts'
import { PLAN_TERMS } from '../../../tenancy/plans.ts'
import { ExportCapabilities } from '../../schema/dashboard/exports.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { ExportProbe } from './export-probe.ts'

/** GET /dashboard/exports/capabilities: what works right now, and what the plan allows. */
export const getExportCapabilities =
  (
    deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports' | 'downloadBytesMax' | 'signedIn'>,
  ): FastifyPluginAsyncTypebox =>
  async (app) => {
    const probe = new ExportProbe(deps)
    app.get(
      '/dashboard/exports/capabilities',
      {
        ...deps.signedIn('exports.read'),
        schema: {
          operationId: 'getExportCapabilities',
          summary: 'Get export options',
          description:
            'Checks whether a filtered export of hot events works. The result is cached for a few seconds.',
          tags: ['Exports'],
          response: { 200: ExportCapabilities },
        },
      },
      async ({ viewer }) => {
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
        }
      },
    )
  }
