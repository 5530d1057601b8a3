import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ApiError } from '../../errors.ts'
import { openDownload } from '../../outlet/export/download.ts'
import type { ExportFormat, ExportJob } from '../../outlet/export/export-job.ts'
import { ReadTurns } from '../../outlet/export/read-turns.ts'
import { prefersGzip } from '../accept-encoding.ts'
import { DownloadSlots } from '../download-slots.ts'
import { type ExportRouteDeps, getExportJob } from '../export-resource.ts'
import { errorResponses } from '../schema/common.ts'
import { EXPORT_ERRORS, ExportParams } from '../schema/export.ts'
import { sendDownload } from '../send-download.ts'

const SLOT_LIMITS = { downloadsMax: 200, perCompanyMax: 50, graceMs: 5_000 }
/** Of the node's connections, which are there for every other call too. */
const READS_AT_ONCE_MAX = 6
/** However slow a client is, in this time it takes something. */
const STALL_MS_MAX = 600_000

const CONTENT: Record<ExportFormat, { type: string; extension: string }> = {
  JSONL: { type: 'application/x-ndjson', extension: 'jsonl' },
  CSV: { type: 'text/csv; charset=utf-8', extension: 'csv' },
}

/** GET /v1/exports/{jobId}/download: the run itself. */
export const downloadExport =
  (deps: ExportRouteDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    const slots = new DownloadSlots(SLOT_LIMITS)
    const turns = new ReadTurns(READS_AT_ONCE_MAX)
    app.addHook('preClose', () => slots.close())
    app.get(
      '/v1/exports/:jobId/download',
      {
        onRequest: deps.requireKey(),
        // The run begins with the download, and a HEAD must not begin it.
        exposeHeadRoute: false,
        schema: {
          operationId: 'downloadExport',
          summary: 'Download an export',
          description:
            'Streams the rows as they are read; write them straight to disk. Can be opened while the job is PENDING or RUNNING, several times and also at once, always from the start and with the same bytes. A body that ends without its last chunk is incomplete: open the download again. The trailers `x-row-count` and `x-content-sha256` (of the uncompressed bytes) are there to check with. Gzip when `Accept-Encoding` allows it.',
          tags: ['Exports'],
          params: ExportParams,
          response: {
            200: DOWNLOAD,
            ...errorResponses(
              ...EXPORT_ERRORS,
              'export_not_downloadable',
              'archive_restoring',
              'overloaded',
            ),
          },
        },
      },
      async ({ principal, params, raw: request }, reply) => {
        const job = await getExportJob(deps, principal, params.jobId)
        using slot = slots.take(principal.companyId)
        // Nobody is left to read it; what it says is that this is no fault of ours.
        reply.raw.once('close', () => slot.stop.abort(new ApiError('overloaded')))
        await using download = await openDownload(deps.exports, job, { stop: slot.stop, turns })
        const isGzip = prefersGzip(request.headers['accept-encoding']?.toString())
        const hasTrailers = request.httpVersion !== '1.0'
        const startedAtMs = performance.now()
        reply.headers(headersOf(job, { isGzip, hasTrailers }))
        reply.hijack()
        for (const [name, value] of Object.entries(reply.getHeaders())) {
          if (value !== undefined) reply.raw.setHeader(name, value)
        }
        reply.raw.flushHeaders()
        const sending = await sendDownload(reply.raw, download, {
          isGzip,
          stallMsMax: STALL_MS_MAX,
        })
        deps.exports.logger.info({
          event: sending.kind === 'complete' ? 'export.downloaded' : 'export.cut',
          jobId: job.id,
          rows: download.rows,
          durationMs: performance.now() - startedAtMs,
          ...(sending.kind === 'cut' && { reason: String(sending.cause) }),
        })
      },
    )
  }

const DOWNLOAD = {
  description: 'The rows, in the format of the job.',
  headers: {
    'content-disposition': Type.String({ description: 'A file name.' }),
    trailer: Type.String({ description: 'x-row-count, x-content-sha256' }),
  },
  content: {
    'application/x-ndjson': { schema: Type.String() },
    'text/csv': { schema: Type.String() },
  },
}

function headersOf(
  { id, format }: ExportJob,
  { isGzip, hasTrailers }: { isGzip: boolean; hasTrailers: boolean },
): Record<string, string> {
  const { type, extension } = CONTENT[format]
  return {
    'content-type': type,
    'content-disposition': `attachment; filename="annals-export-${id}.${extension}"`,
    vary: 'accept-encoding',
    ...(isGzip && { 'content-encoding': 'gzip' }),
    ...(hasTrailers && { trailer: 'x-row-count, x-content-sha256' }),
  }
}
