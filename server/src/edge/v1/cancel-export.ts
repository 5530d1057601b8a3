import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import * as exporter from '../../outlet/export/exporter.ts'
import { type ExportRouteDeps, getExportJob } from '../export/export-resource.ts'
import { changeWithKey } from '../key-change.ts'
import { refuseBody } from '../http/no-body.ts'
import { ExportParams, ExportStatusResult } from '../schema/export.ts'

/** POST /v1/exports/{jobId}/cancel: cancels the job and its running downloads. */
export const cancelExport =
  (deps: ExportRouteDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/exports/:jobId/cancel',
      {
        onRequest: deps.requireKey(),
        preValidation: refuseBody,
        schema: {
          operationId: 'cancelExport',
          summary: 'Cancel an export',
          description:
            'Running downloads are cut within two seconds. Canceling a canceled job changes nothing.',
          tags: ['Exports'],
          params: ExportParams,
          errors: ['conflict'],
          response: {
            200: ExportStatusResult,
          },
        },
      },
      async (request) => {
        const { principal, params } = request
        const job = await getExportJob(deps, principal, params.jobId)
        const now = new Date(deps.exports.clock())
        await changeWithKey(deps, request, (trx) => exporter.cancelExportJob(trx, job, now))
        return { id: job.id, status: 'CANCELED' as const }
      },
    )
  }
