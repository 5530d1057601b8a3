import { ArchiveReadLimiter } from '../../archive-read-limiter.ts'
import { defineRoute } from '../../define-route.ts'
import { countRefusals } from '../../export/download-refusals.ts'
import { evidencePack } from '../../export/evidence-pack.ts'
import type { ManifestDeps } from '../../export/export-manifest.ts'
import { ExportParams } from '../../schema/export.ts'
import { EvidencePack } from '../../schema/export-file.ts'
import { memberCaller } from '../member-caller.ts'
import { type MemberDownloadDeps, sendToMember } from './member-download.ts'

/** GET /dashboard/exports/{jobId}/evidence-pack: runs the export and streams it with its proof. */
export const downloadEvidencePack = defineRoute({
  method: 'GET',
  path: '/dashboard/exports/:jobId/evidence-pack',
  member: 'exports.create',
  config: { hasOwnLimits: true, isLongRunning: true },
  options: {
    // The download starts the run, and a HEAD request must not.
    exposeHeadRoute: false,
  },
  summary: 'Download an evidence pack',
  description:
    'Downloads the export as a ZIP archive with the rows, their manifest, the offline verifier and instructions for checking them. Like a download of the file, this runs the job. If the newest events are not signed yet, it waits for up to 15 seconds, and then returns 409 with `Retry-After`.',
  params: ExportParams,
  errors: [
    'cross_site',
    'plan_required',
    'conflict',
    'export_not_downloadable',
    'download_too_large',
    'archive_restoring',
  ],
  response: EvidencePack,
  handle: (deps: MemberDownloadDeps & ManifestDeps, app) => {
    const archiveReads = new ArchiveReadLimiter()
    countRefusals(app, deps.refusals, (request) => request.viewer && memberCaller(deps, request))
    return (request, reply) => {
      const { companyId, userId: callerId } = request.viewer
      const call = { companyId, callerId, archiveReads }
      const { jobId } = request.params
      return sendToMember(deps, {
        request,
        reply,
        jobId,
        packOf: (job) => evidencePack(deps, call, job),
      })
    }
  },
})
