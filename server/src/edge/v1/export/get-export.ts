import { defineRoute } from '../../define-route.ts'
import { exportRecord } from '../../export/export-record.ts'
import { type ExportRouteDeps, getExportJob } from '../../export/export-resource.ts'
import { ExportParams, ExportRecord } from '../../schema/export.ts'

/** GET /v1/exports/{jobId}: the job's progress, and what went wrong. */
export const getExport = defineRoute({
  method: 'GET',
  path: '/v1/exports/:jobId',
  key: { permission: 'exports' },
  summary: 'Get an export',
  description: 'Returns the export job with its status and result.',
  params: ExportParams,
  response: ExportRecord,
  handle:
    (deps: ExportRouteDeps) =>
    async ({ principal, params }) =>
      exportRecord(await getExportJob(deps, principal, params.jobId)),
})
