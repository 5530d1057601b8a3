import * as preflight from '../../../outlet/export/preflight/preflight.ts'
import { defineRoute } from '../../define-route.ts'
import { preflightRecord } from '../../export/export-record.ts'
import { type ExportRouteDeps, readExportRequest } from '../../export/export-resource.ts'
import { ExportInput, ExportPreflight } from '../../schema/export.ts'

/** POST /v1/exports/preflight: estimates the export that this body would create. */
export const preflightExport = defineRoute({
  method: 'POST',
  path: '/v1/exports/preflight',
  key: { permission: 'exports', plan: 'STARTER' },
  summary: 'Preview an export',
  description:
    'Returns how many rows and bytes an export with this body would have, whether the plan cuts it, and whether archived data must be restored first. Creates nothing.',
  body: ExportInput,
  errors: ['not_found'],
  response: ExportPreflight,
  handle:
    (deps: ExportRouteDeps) =>
    async ({ principal, body }) => {
      const exportRequest = await readExportRequest(deps, principal, body)
      return preflightRecord(await preflight.estimateExport(deps.exports, exportRequest))
    },
})
