import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { DashboardExport } from '../../schema/dashboard/exports.ts'
import { ExportParams } from '../../schema/export.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { dashboardExport, getVisibleExport } from './visible-export.ts'

/** GET /dashboard/exports/{jobId}: the job's progress, and what went wrong. */
export const getDashboardExport =
  (deps: Pick<DashboardDeps, 'db' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/exports/:jobId',
      {
        ...deps.signedIn('exports.read'),
        schema: {
          operationId: 'getDashboardExport',
          summary: 'Get an export',
          description: 'Returns the export job with its status and result.',
          tags: ['Exports'],
          params: ExportParams,
          response: { 200: DashboardExport },
        },
      },
      async ({ viewer, params }) =>
        await dashboardExport(
          deps.db,
          viewer,
          await getVisibleExport(deps.db, viewer, params.jobId),
        ),
    )
  }
