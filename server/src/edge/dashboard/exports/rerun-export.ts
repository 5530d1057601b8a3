import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { rerunExportJob } from '../../../outlet/export/exporter.ts'
import { refuseBody } from '../../http/no-body.ts'
import { DashboardExport } from '../../schema/dashboard/exports.ts'
import { ExportParams } from '../../schema/export.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { addAudited, dashboardExport, getVisibleExport } from './visible-export.ts'

/** POST /dashboard/exports/{jobId}/rerun: creates a new job with the same rows. */
export const rerunDashboardExport =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/exports/:jobId/rerun',
      {
        ...deps.signedIn('exports.create'),
        preValidation: refuseBody,
        schema: {
          operationId: 'rerunDashboardExport',
          summary: 'Rerun an export',
          description: 'Creates a job with the same rows, whatever the status of the original job.',
          tags: ['Exports'],
          params: ExportParams,
          errors: ['plan_required', 'conflict'],
          response: {
            201: {
              ...DashboardExport,
              description: 'The new export job. Download it within seven days.',
            },
          },
        },
      },
      async (request, reply) => {
        const { viewer, params } = request
        const job = await getVisibleExport(deps.db, viewer, params.jobId)
        // Keep the job's workspace, so that everyone who can see the first job can see this one.
        const by = {
          plan: viewer.plan,
          workspaceId: job.workspaceId,
          createdBy: viewer.userId,
        }
        const add = addAudited(deps, request, 'EXPORT_RERUN', { rerunOf: job.id })
        const again = await rerunExportJob(deps.exports, job, by, add)
        return await reply.code(201).send(await dashboardExport(deps.db, viewer, again))
      },
    )
  }
