import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { DashboardExport, DashboardExportInput } from '../../schema/dashboard/exports.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { requestExport } from './visible-export.ts'

/** POST /dashboard/exports: selects the rows. The download creates the file. */
export const createDashboardExport =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/exports',
      {
        ...deps.signedIn('exports.create'),
        schema: {
          operationId: 'createDashboardExport',
          summary: 'Create an export',
          description:
            'Exports the workspace in `filters.workspaceId`, or all that the member can see. The export contains the events stored at this moment.',
          tags: ['Exports'],
          body: DashboardExportInput,
          errors: ['plan_required', 'not_found', 'conflict'],
          response: {
            201: {
              ...DashboardExport,
              description: 'The new export job. Download it within seven days.',
            },
          },
        },
      },
      async (request, reply) =>
        await reply.code(201).send(await requestExport(deps, request, request.body)),
    )
  }
