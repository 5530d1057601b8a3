import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { ExportJob } from '../../../outlet/export/job/export-job.ts'
import { createExportJob } from '../../../outlet/export/exporter.ts'
import { findVisibleJob } from '../../../outlet/export/job/visible-job-store.ts'
import { parseId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { listMemberEmails } from '../../../tenancy/member/member-email-store.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { addJobAs } from '../../export/export-actions.ts'
import { exportRecord } from '../../export/export-record.ts'
import type { DashboardExport, DashboardExportInput } from '../../schema/dashboard/exports.ts'
import { memberCaller } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readDashboardExportRequest } from './export-request.ts'

/** Returns the job in a path if the member can see it. */
export async function getVisibleExport(
  db: Queryable,
  viewer: Viewer,
  id: string,
): Promise<ExportJob> {
  const jobId = parseId<'export-job'>(id)
  const job = jobId && (await findVisibleJob(db, viewer, jobId))
  if (!job) throw new ApiError('not_found')
  return job
}

/** Formats jobs for the dashboard, each with its creator. */
export async function dashboardExports(
  db: Queryable,
  { companyId }: Viewer,
  jobs: readonly ExportJob[],
): Promise<Static<typeof DashboardExport>[]> {
  const userIds = [...new Set(jobs.flatMap(({ createdBy }) => createdBy ?? []))]
  const emails = await listMemberEmails(db, { companyId, userIds })
  return jobs.map((job) => ({
    ...exportRecord(job),
    createdBy: creatorOf(job, emails),
    cadence: job.cadence,
    isStored: job.storedParts !== null,
    workspaceIds: job.ranges.map(({ workspaceId }) => workspaceId),
  }))
}

function creatorOf({ createdBy, cadence }: ExportJob, emails: ReadonlyMap<string, string>) {
  if (cadence !== null) return { kind: 'SCHEDULE' as const, email: null }
  if (createdBy === null) return { kind: 'KEY' as const, email: null }
  return { kind: 'MEMBER' as const, email: emails.get(createdBy) ?? null }
}

export async function dashboardExport(db: Queryable, viewer: Viewer, job: ExportJob) {
  const [record] = await dashboardExports(db, viewer, [job])
  if (!record) throw new ApiError('not_found')
  return record
}

type RequestDeps = Pick<DashboardDeps, 'db' | 'clock' | 'exports'>

/** Creates the export that a body requests, on behalf of the member. */
export async function requestExport(
  deps: RequestDeps,
  request: FastifyRequest,
  body: Static<typeof DashboardExportInput>,
  metadata: Record<string, unknown> = {},
): Promise<Static<typeof DashboardExport>> {
  const { viewer } = request
  const exportRequest = await readDashboardExportRequest(deps, viewer, body)
  const { savedExplorerViewId: viewId } = body
  const origin = { ...(viewId !== undefined && { viewId }), ...metadata }
  const add = addJobAs(memberCaller(deps, request), deps, 'EXPORT_REQUESTED', origin)
  return await dashboardExport(
    deps.db,
    viewer,
    await createExportJob(deps.exports, exportRequest, add),
  )
}
