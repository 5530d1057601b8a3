import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { cancelJob } from '../../export/export-actions.ts'
import { type ExportRouteDeps, getExportJob } from '../../export/export-resource.ts'
import { ExportParams, ExportStatusResult } from '../../schema/export.ts'

/** POST /v1/exports/{jobId}/cancel: cancels the job and its running downloads. */
export const cancelExport = defineRoute({
  method: 'POST',
  path: '/v1/exports/:jobId/cancel',
  key: { permission: 'exports' },
  summary: 'Cancel an export',
  description:
    'Running downloads are cut within two seconds. Canceling a canceled job changes nothing.',
  params: ExportParams,
  errors: ['conflict'],
  response: ExportStatusResult,
  handle: (deps: ExportRouteDeps) => async (request) => {
    const job = await getExportJob(deps, request.principal, request.params.jobId)
    await cancelJob(deps, keyCaller(deps, request), job)
    return { id: job.id, status: 'CANCELED' as const }
  },
})
