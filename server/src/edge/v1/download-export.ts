import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type ExportRouteDeps, getExportJob } from '../export-resource.ts'
import { errorResponses } from '../schema/common.ts'
import { EXPORT_ERRORS, ExportParams } from '../schema/export.ts'
import { ExportFile } from '../schema/export-file.ts'

/** GET /v1/exports/{jobId}/download: the run itself. */
export const downloadExport =
  (deps: ExportRouteDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.addHook('preClose', () => deps.downloads.close())
    app.get(
      '/v1/exports/:jobId/download',
      {
        onRequest: deps.requireKey(),
        // The run begins with the download, and a HEAD must not begin it.
        exposeHeadRoute: false,
        schema: {
          operationId: 'downloadExport',
          summary: 'Download an export',
          description:
            'Streams the rows as they are read; write them straight to disk. Can be opened while the job is PENDING or RUNNING, several times and also at once, always from the start and with the same bytes. A body whose connection was cut before its last chunk is incomplete: open the download again. When one has come to its end the job is SUCCEEDED, and a rerun gives the same rows again. A client that takes nothing for ten minutes is cut.',
          tags: ['Exports'],
          params: ExportParams,
          response: {
            200: ExportFile,
            ...errorResponses(
              ...EXPORT_ERRORS,
              'export_not_downloadable',
              'archive_restoring',
              'overloaded',
            ),
          },
        },
      },
      async (request, reply) => {
        const { principal, params } = request
        await deps.downloads.send(request, reply, await getExportJob(deps, principal, params.jobId))
      },
    )
  }
