import * as exporter from '../../outlet/export/exporter.ts'
import { defineRoute } from '../define-route.ts'
import { type ExportRouteDeps, getExportJob } from '../export/export-resource.ts'
import { changeWithKey } from '../key-change.ts'
import { ExportParams, ExportStatusResult } from '../schema/export.ts'

/** POST /v1/exports/{jobId}/cancel: cancels the job and its running downloads. */
export const cancelExport = defineRoute({
  method: 'POST',
  path: '/v1/exports/:jobId/cancel',
  key: {},
  summary: 'Cancel an export',
  description:
    'Running downloads are cut within two seconds. Canceling a canceled job changes nothing.',
  params: ExportParams,
  errors: ['conflict'],
  response: ExportStatusResult,
  handle: (deps: ExportRouteDeps) => async (request) => {
    const { principal, params } = request
    const job = await getExportJob(deps, principal, params.jobId)
    const now = new Date(deps.exports.clock())
    await changeWithKey(deps, request, (trx) => exporter.cancelExportJob(trx, job, now))
    return { id: job.id, status: 'CANCELED' as const }
  },
})
