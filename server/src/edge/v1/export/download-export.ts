import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../../errors.ts'
import type { ExportJob } from '../../../outlet/export/job/export-job.ts'
import { ownsJob } from '../../../outlet/export/job/export-job-store.ts'
import { refuseUnstored } from '../../../outlet/export/schedule/stored-file.ts'
import { type Gate, requireAudit } from '../../auth/gate.ts'
import { recheckKey } from '../../auth/key-access.ts'
import { keyCaller } from '../../auth/key-caller.ts'
import { defineRoute } from '../../define-route.ts'
import type { DownloadRules } from '../../export/download-manager.ts'
import { countRefusals } from '../../export/download-refusals.ts'
import { auditDownload } from '../../export/export-actions.ts'
import { type ExportRouteDeps, getExportJob, ownerOf } from '../../export/export-resource.ts'
import { ExportParams } from '../../schema/export.ts'
import { ExportFile } from '../../schema/export-file.ts'

const GATE: Gate = { permission: 'exports', plan: 'STARTER' }

/** GET /v1/exports/{jobId}/download: runs the export and streams it. */
export const downloadExport = defineRoute({
  method: 'GET',
  path: '/v1/exports/:jobId/download',
  key: GATE,
  config: { hasOwnLimits: true, isLongRunning: true },
  options: {
    // The download starts the run, and a HEAD request must not.
    exposeHeadRoute: false,
  },
  summary: 'Download an export',
  description:
    'Streams the rows, so write them straight to disk. You can download a job while it is PENDING or RUNNING, several times and in parallel. Every download starts from the beginning and has the same bytes. When a download is complete, the job is SUCCEEDED; to download it again, rerun it. A job of a schedule is the other way round: it can be downloaded once it is SUCCEEDED, as often as you like. If the connection is cut before the last chunk, the file is incomplete: download it again. The server cuts the connection if the client reads nothing for ten minutes, and within two seconds after the key is revoked or expires, or the caller loses access for another reason.',
  params: ExportParams,
  errors: ['export_not_downloadable', 'archive_restoring'],
  response: ExportFile,
  handle: (deps: ExportRouteDeps, app) => {
    app.addHook('preClose', () => deps.downloads.close())
    countRefusals(app, deps.refusals, (request) => request.key && keyCaller(deps, request))
    return async (request, reply) => {
      const job = await getExportJob(deps, request.principal, request.params.jobId)
      refuseUnstored(job)
      const rules: DownloadRules = {
        ...auditDownload(deps, keyCaller(deps, request), job),
        watch: (onLost) => watchKey(deps, request, { job, onLost }),
        check: async () => {},
        bytesMax: Infinity,
      }
      await deps.downloads.send({ request, reply, job, rules, pack: null })
    }
  },
})

/** Calls `onLost` when the key could no longer open the download, until disposed of. */
function watchKey(
  { keyAccess, clock }: ExportRouteDeps,
  { key: { kid }, clientAddress: address }: FastifyRequest,
  { job, onLost }: { job: ExportJob; onLost: (reason: unknown) => void },
): Disposable {
  return keyAccess.watch(
    kid,
    (key) => {
      const principal = recheckKey(key, { address, gate: GATE, nowMs: clock() })
      if (!ownsJob(ownerOf(principal), job)) throw new ApiError('not_found')
      requireAudit(principal, job.filterWorkspaceId)
    },
    onLost,
  )
}
