import { createExportJob } from '../../../outlet/export/exporter.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import { addJobAs } from '../../export/export-actions.ts'
import { type ExportRouteDeps, readExportRequest } from '../../export/export-resource.ts'
import { CreatedExport, ExportInput } from '../../schema/export.ts'

/** POST /v1/exports: selects the rows. The download creates the file. */
export const createExport = defineRoute({
  method: 'POST',
  path: '/v1/exports',
  key: { permission: 'exports', plan: 'STARTER' },
  summary: 'Create an export',
  description:
    'The export contains the events stored at this moment, no matter when it is downloaded. A company key exports all workspaces, or the one in `filters.workspaceId`.',
  body: ExportInput,
  errors: ['not_found', 'conflict'],
  response: { 201: CreatedExport },
  handle: (deps: ExportRouteDeps) => async (request) => {
    const exportRequest = await readExportRequest(deps, request.principal, request.body)
    const add = addJobAs(keyCaller(deps, request), deps, 'EXPORT_REQUESTED')
    const { id, status } = await createExportJob(deps.exports, exportRequest, add)
    return { jobId: id, status }
  },
})
