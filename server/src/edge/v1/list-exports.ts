import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { listExportJobs } from '../../outlet/export/export-job-store.ts'
import { readExportPage } from '../export/export-page.ts'
import { exportRecord } from '../export/export-record.ts'
import { type ExportRouteDeps, ownerOf } from '../export/export-resource.ts'
import { ExportPage, ExportQuery } from '../schema/export.ts'

/** GET /v1/exports: newest first. */
export const listExports =
  (deps: ExportRouteDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/v1/exports',
      {
        onRequest: deps.requireKey(),
        schema: {
          operationId: 'listExports',
          summary: 'List exports',
          description:
            'Returns export jobs, newest first. A workspace key sees the jobs created with keys of its workspace. A cursor is only valid for the same `status`. Jobs are listed for 90 days after they are final.',
          tags: ['Exports'],
          querystring: ExportQuery,
          response: {
            200: ExportPage,
          },
        },
      },
      async ({ principal, query }) => {
        const owner = ownerOf(principal)
        const whose = `${owner.companyId}/${owner.workspaceId ?? 'all'}`
        const { jobs, nextCursor } = await readExportPage(deps.cursors, whose, query, (page) =>
          listExportJobs(deps.db, owner, page),
        )
        return { data: jobs.map(exportRecord), nextCursor }
      },
    )
  }
