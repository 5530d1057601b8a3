import type { AddJob } from '../../outlet/export/exporter.ts'
import * as exporter from '../../outlet/export/exporter.ts'
import { defineRoute } from '../define-route.ts'
import { type ExportRouteDeps, readExportRequest } from '../export/export-resource.ts'
import { changeWithKey } from '../key-change.ts'
import { CreatedExport, ExportInput } from '../schema/export.ts'

/** POST /v1/exports: selects the rows. The download creates the file. */
export const createExport = defineRoute({
  method: 'POST',
  path: '/v1/exports',
  key: { plan: 'STARTER' },
  summary: 'Create an export',
  description:
    'The export contains the events stored at this moment, no matter when it is downloaded. A company key exports all workspaces, or the one in `filters.workspaceId`.',
  body: ExportInput,
  errors: ['insufficient_scope', 'not_found', 'conflict'],
  response: { 201: CreatedExport },
  handle: (deps: ExportRouteDeps) => async (request) => {
    const exportRequest = await readExportRequest(deps, request.principal, request.body)
    const add: AddJob = (insert) => changeWithKey(deps, request, insert)
    const { id, status } = await exporter.createExportJob(deps.exports, exportRequest, add)
    return { jobId: id, status }
  },
})
