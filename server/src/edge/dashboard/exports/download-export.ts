import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../../errors.ts'
import type { ExportJob } from '../../../outlet/export/export-job.ts'
import { findViewer, type SessionToken } from '../../../tenancy/session-store.ts'
import { refuseRole } from '../../auth/require-session.ts'
import type { DownloadTerms } from '../../download-desk.ts'
import { errorResponses, SESSION_ERRORS } from '../../schema/common.ts'
import { ExportParams } from '../../schema/export.ts'
import { ExportFile } from '../../schema/export-file.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { refuseTooLarge } from './download-guard.ts'
import { getVisibleExport, resourceOf } from './visible-export.ts'

/** How long somebody who may no longer have it is still sent a file. */
const CHECK_EVERY_MS = 5_000

type DownloadDeps = Pick<
  DashboardDeps,
  'db' | 'hasty' | 'clock' | 'cookie' | 'exports' | 'downloads' | 'downloadBytesMax' | 'signedIn'
>

/** GET /dashboard/exports/{jobId}/download: the run itself, for a browser. */
export const downloadDashboardExport =
  (deps: DownloadDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/exports/:jobId/download',
      {
        ...deps.signedIn('exports.create'),
        // The run begins with the download, and a HEAD must not begin it.
        exposeHeadRoute: false,
        schema: {
          operationId: 'downloadDashboardExport',
          summary: 'Download an export',
          description:
            'As the API’s download, up to 100 MB uncompressed: what is known to be larger is refused, and what turns out to be is cut. Then the job says `download_too_large`, stays open, and can be downloaded with an API key.',
          tags: ['Exports'],
          params: ExportParams,
          response: {
            200: ExportFile,
            ...errorResponses(
              ...SESSION_ERRORS,
              'cross_site',
              'not_found',
              'export_not_downloadable',
              'download_too_large',
              'archive_restoring',
              'overloaded',
            ),
          },
        },
      },
      async (request, reply) => {
        refuseForeignPage(request)
        const job = await getVisibleExport(deps.db, request.viewer, request.params.jobId)
        using _watch = cutUnlessAllowed(deps, request, reply, job)
        try {
          await deps.downloads.send(request, reply, job, auditedTerms(deps, request, job))
        } catch (error) {
          throw withoutInternals(error)
        }
      },
    )
  }

/** A link on another site could begin a run: a browser that follows one says so. */
function refuseForeignPage({ headers }: FastifyRequest): void {
  if (headers['sec-fetch-site'] === 'cross-site') throw new ApiError('cross_site')
}

/** A member who is removed, or signed out, or has lost the workspace, has no more of it. */
function cutUnlessAllowed(
  deps: DownloadDeps,
  { headers }: FastifyRequest,
  reply: FastifyReply,
  job: ExportJob,
): Disposable {
  const token = deps.cookie.read(headers.cookie) ?? ''
  const cut = async () => {
    // With a reset, so that what is on its way does not arrive either.
    if (!(await mayStillHave(deps, token, job))) reply.raw.socket?.resetAndDestroy()
  }
  const check = setInterval(() => void cut(), CHECK_EVERY_MS)
  check.unref()
  return { [Symbol.dispose]: () => clearInterval(check) }
}

async function mayStillHave(
  { hasty, clock }: DownloadDeps,
  token: SessionToken,
  job: ExportJob,
): Promise<boolean> {
  try {
    const viewer = await findViewer(hasty, token, clock())
    if (!viewer) return false
    refuseRole(viewer, 'exports.create')
    await getVisibleExport(hasty, viewer, job.id)
    return true
  } catch (error) {
    // A database that does not answer now is asked again; what it refuses is final.
    return !(error instanceof ApiError)
  }
}

/**
 * It begins when that is written down. It is complete when that is written down too, in the transaction
 * that makes the job succeed and before the client is told: otherwise it is cut.
 */
function auditedTerms(deps: DownloadDeps, request: FastifyRequest, job: ExportJob): DownloadTerms {
  const actor = actorOf(request)
  const resource = resourceOf(job)
  return {
    bytesMax: deps.downloadBytesMax,
    check: () => refuseTooLarge(deps, job),
    begin: () =>
      audited(deps, actor, async (_trx, note) => {
        const { source, format } = job
        note({ action: 'EXPORT_DOWNLOAD_STARTED', resource, metadata: { source, format } })
      }),
    finish: (download) =>
      audited(deps, actor, async (trx, note) => {
        const result = await download.finish(trx)
        const { rows, bytes, sha256, isTruncated: truncated } = result
        const metadata = { rows, bytes, sha256, truncated }
        note({ action: 'EXPORT_DOWNLOADED', resource, metadata })
        return result
      }),
  }
}

/** Which file of the archive is at fault is for the job's page, not for a body that a proxy may keep. */
function withoutInternals(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== 'export_not_downloadable') return error
  return new ApiError('export_not_downloadable', {
    message:
      'This export can no longer be downloaded; its page says why. Rerun it to have the same rows again.',
    cause: error,
  })
}
