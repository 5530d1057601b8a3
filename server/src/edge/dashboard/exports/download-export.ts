import { defineRoute } from '../../define-route.ts'
import { countRefusals } from '../../export/download-refusals.ts'
import { ExportParams } from '../../schema/export.ts'
import { ExportFile } from '../../schema/export-file.ts'
import { memberCaller } from '../member-caller.ts'
import { type MemberDownloadDeps, sendToMember } from './member-download.ts'

/** GET /dashboard/exports/{jobId}/download: runs the export and streams it to a browser. */
export const downloadDashboardExport = defineRoute({
  method: 'GET',
  path: '/dashboard/exports/:jobId/download',
  member: 'exports.create',
  config: { hasOwnLimits: true, isLongRunning: true },
  options: {
    // The download starts the run, and a HEAD request must not.
    exposeHeadRoute: false,
  },
  summary: 'Download an export',
  description:
    'The same as the download of the API, up to 100 MB uncompressed. Larger files are refused, or cut if the size is not known in advance. `lastAttempt` of the job then has the code `download_too_large`, and an API key can still download it.',
  params: ExportParams,
  errors: [
    'cross_site',
    'plan_required',
    'export_not_downloadable',
    'download_too_large',
    'archive_restoring',
  ],
  response: ExportFile,
  handle: (deps: MemberDownloadDeps, app) => {
    countRefusals(app, deps.refusals, (request) => request.viewer && memberCaller(deps, request))
    return (request, reply) =>
      sendToMember(deps, { request, reply, jobId: request.params.jobId, packOf: () => null })
  },
})
