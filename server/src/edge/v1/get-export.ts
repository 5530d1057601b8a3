import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { exportRecord } from '../export/export-record.ts'
import { type ExportRouteDeps, getExportJob } from '../export/export-resource.ts'
import { ExportParams, ExportRecord } from '../schema/export.ts'

/** GET /v1/exports/{jobId}: the job's progress, and what went wrong. */
export const getExport =
  (deps: ExportRouteDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/v1/exports/:jobId',
      {
        onRequest: deps.requireKey(),
        schema: {
          operationId: 'getExport',
          summary: 'Get an export',
          description: 'Returns the export job with its status and result.',
          tags: ['Exports'],
          params: ExportParams,
          response: { 200: ExportRecord },
        },
      },
      async ({ principal, params }) =>
        exportRecord(await getExportJob(deps, principal, params.jobId)),
    )
  }
