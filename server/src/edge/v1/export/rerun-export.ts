import { rerunExportJob } from '../../../outlet/export/exporter.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { addJobAs } from '../../export/export-actions.ts'
import { type ExportRouteDeps, getExportJob } from '../../export/export-resource.ts'
import { CreatedExport, ExportParams } from '../../schema/export.ts'

/** POST /v1/exports/{jobId}/rerun: creates a new job with the same rows. */
export const rerunExport = defineRoute({
  method: 'POST',
  path: '/v1/exports/:jobId/rerun',
  key: { permission: 'exports', plan: 'STARTER' },
  summary: 'Rerun an export',
  description:
    'Creates a job with the same rows, whatever the status of the original job. The file has the same bytes, unless the plan now allows fewer rows. Erasure, which is planned, will be another exception.',
  params: ExportParams,
  errors: ['conflict'],
  response: { 201: CreatedExport },
  handle: (deps: ExportRouteDeps) => async (request) => {
    const { principal, params } = request
    const job = await getExportJob(deps, principal, params.jobId)
    const by = { ...principal, createdBy: null }
    const add = addJobAs(keyCaller(deps, request), deps, 'EXPORT_RERUN', { rerunOf: job.id })
    const { id, status } = await rerunExportJob(deps.exports, job, by, add)
    return { jobId: id, status }
  },
})
