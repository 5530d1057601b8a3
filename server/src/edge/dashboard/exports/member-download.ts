import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../../errors.ts'
import type { ExportJob } from '../../../outlet/export/job/export-job.ts'
import { refuseUnstored } from '../../../outlet/export/schedule/stored-file.ts'
import { canSeeJob } from '../../../outlet/export/job/visible-job-store.ts'
import { hasExports } from '../../../tenancy/plans.ts'
import { updateLastUse } from '../../../tenancy/sign-in/session-store.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { refuseViewer } from '../../auth/require-session.ts'
import { refuseSignedOut } from '../../auth/session-access.ts'
import type { DownloadRules, Pack } from '../../export/download-manager.ts'
import { auditDownload } from '../../export/export-actions.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { refuseTooLarge } from './download-guard.ts'
import { getVisibleExport } from './visible-export.ts'

export type MemberDownloadDeps = Pick<
  DashboardDeps,
  | 'db'
  | 'dbFast'
  | 'clock'
  | 'cookie'
  | 'sessionAccess'
  | 'exports'
  | 'downloads'
  | 'refusals'
  | 'downloadBytesMax'
>

type MemberDownload = {
  request: FastifyRequest
  reply: FastifyReply
  jobId: string
  /** Returns null to send the file itself. */
  packOf: (job: ExportJob) => Pack | null
}

/** Runs the export and streams it to a browser, alone or in a pack. */
export async function sendToMember(
  deps: MemberDownloadDeps,
  { request, reply, jobId, packOf }: MemberDownload,
): Promise<void> {
  refuseOtherSite(request)
  const job = await findExport(deps, request.viewer, jobId)
  refuseUnstored(job)
  try {
    const rules = rulesOf(deps, request, job)
    await deps.downloads.send({ request, reply, job, rules, pack: packOf(job) })
  } catch (error) {
    throw withoutInternals(error)
  }
}

/** A link on another site, or on a sibling subdomain, must not start a run. */
function refuseOtherSite({ headers }: FastifyRequest): void {
  const site = headers['sec-fetch-site'] ?? 'none'
  if (site !== 'same-origin' && site !== 'none') throw new ApiError('cross_site')
}

/** On a plan without exports, an unknown export gets the same error as an existing one. */
async function findExport(
  { db }: MemberDownloadDeps,
  viewer: Viewer,
  id: string,
): Promise<ExportJob> {
  try {
    return await getVisibleExport(db, viewer, id)
  } catch (error) {
    refusePlan(viewer)
    throw error
  }
}

function refusePlan({ plan }: Viewer): void {
  if (!hasExports(plan)) throw new ApiError('plan_required')
}

/** Calls `onLost` when the member loses access to the download. Stops when disposed. */
function watchSession(
  { sessionAccess, cookie, dbFast, clock }: MemberDownloadDeps,
  { headers, clientAddress }: FastifyRequest,
  { job, onLost }: { job: ExportJob; onLost: (reason: unknown) => void },
): Disposable {
  return sessionAccess.watch(
    cookie.read(headers.cookie) ?? '',
    (grant) => {
      const { viewer } = refuseSignedOut(grant)
      refuseViewer(viewer, 'exports.create', clientAddress)
      refusePlan(viewer)
      if (!canSeeJob(viewer, job)) throw new ApiError('not_found')
      // A download keeps the session alive. An outage doesn't end it: the next check tries again.
      updateLastUse(dbFast, viewer, clock()).catch(() => {})
    },
    onLost,
  )
}

function rulesOf(deps: MemberDownloadDeps, request: FastifyRequest, job: ExportJob): DownloadRules {
  return {
    ...auditDownload(deps, memberCaller(deps, request), job),
    bytesMax: deps.downloadBytesMax,
    watch: (onLost) => watchSession(deps, request, { job, onLost }),
    check: async () => {
      refusePlan(request.viewer)
      await refuseTooLarge(deps, job)
    },
  }
}

/** Only the job's page names the damaged archive file, because a proxy may cache the response body. */
function withoutInternals(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== 'export_not_downloadable') return error
  return new ApiError('export_not_downloadable', {
    message:
      'This export can no longer be downloaded. Its page shows why. Rerun it to get the same rows.',
    cause: error,
  })
}
