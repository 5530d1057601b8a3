import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../../errors.ts'
import type { ExportJob, ExportJobId } from '../../outlet/export/export-job.ts'
import { listExportJobs } from '../../outlet/export/export-job-store.ts'
import { parseId } from '../../platform/id.ts'
import { exportRecord } from '../export-record.ts'
import { type ExportRouteDeps, ownerOf } from '../export-resource.ts'
import { errorResponses, KEY_ERRORS } from '../schema/common.ts'
import { ExportPage, ExportQuery } from '../schema/export.ts'

const LIMIT_DEFAULT = 50

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
            'Newest first. A workspace key sees those that were made with keys of its workspace.',
          tags: ['Exports'],
          querystring: ExportQuery,
          response: {
            200: ExportPage,
            ...errorResponses(...KEY_ERRORS, 'invalid_request', 'invalid_cursor'),
          },
        },
      },
      async ({ principal, query }) => {
        const owner = ownerOf(principal)
        const binding = `exports/${owner.companyId}/${owner.workspaceId ?? 'all'}`
        const limit = query.limit ?? LIMIT_DEFAULT
        const before =
          query.cursor === undefined ? null : placeOf(deps.cursors.decode(query.cursor, binding))
        // One more than asked for tells whether there is a further page.
        const jobs = await listExportJobs(deps.db, owner, { before, limit: limit + 1 })
        const hasMore = jobs.length > limit
        if (hasMore) jobs.pop()
        const last = jobs.at(-1)
        return {
          data: jobs.map(exportRecord),
          nextCursor: hasMore && last ? deps.cursors.encode(placeText(last), binding) : null,
        }
      },
    )
  }

function placeText({ createdAt, id }: ExportJob): string {
  return `${createdAt.getTime()}/${id}`
}

function placeOf(text: string | null): { createdAt: Date; id: ExportJobId } {
  const [ms = '', id = ''] = text?.split('/') ?? []
  const jobId: ExportJobId | null = parseId(id)
  if (jobId === null) throw new ApiError('invalid_cursor')
  return { createdAt: new Date(Number(ms)), id: jobId }
}
