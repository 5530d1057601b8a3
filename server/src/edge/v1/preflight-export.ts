import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import * as preflight from '../../outlet/export/preflight.ts'
import { preflightRecord } from '../export/export-record.ts'
import { type ExportRouteDeps, readExportRequest } from '../export/export-resource.ts'
import { ExportInput, ExportPreflight } from '../schema/export.ts'

/** POST /v1/exports/preflight: estimates the export that this body would create. */
export const preflightExport =
  (deps: ExportRouteDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/exports/preflight',
      {
        onRequest: deps.requireKey({ plan: 'STARTER' }),
        schema: {
          operationId: 'preflightExport',
          summary: 'Preview an export',
          description:
            'Returns how many rows and bytes an export with this body would have, whether the plan cuts it, and whether archived data must be restored first. Creates nothing.',
          tags: ['Exports'],
          body: ExportInput,
          errors: ['insufficient_scope', 'not_found'],
          response: {
            200: ExportPreflight,
          },
        },
      },
      async ({ principal, body }) => {
        const exportRequest = await readExportRequest(deps, principal, body)
        return preflightRecord(await preflight.estimateExport(deps.exports, exportRequest))
      },
    )
  }
