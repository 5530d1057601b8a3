import { type RawBuilder, sql } from 'kysely'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import type { ExportJob, ExportJobId } from './export-job.ts'
import { toJob } from './export-job-row.ts'
import { beforePosition, type JobPage } from './export-job-store.ts'

/** Newest first. */
export async function listVisibleJobs(
  db: Queryable,
  viewer: Viewer,
  { status, before, limit }: JobPage,
  workspaceId: WorkspaceId | null = null,
): Promise<ExportJob[]> {
  const rows = await jobsOf(db, viewer)
    .$if(status !== null, (query) => query.where('status', '=', status))
    .$if(workspaceId !== null, (query) => query.where(isAbout(workspaceId)))
    .$if(before !== null, (query) => query.where(beforePosition(before)))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toJob)
}

/** Whether a job is for the workspace or reads its events. An empty job for no workspace matches all. */
function isAbout(workspaceId: WorkspaceId | null): RawBuilder<boolean> {
  return sql<boolean>`
    (workspace_id = ${workspaceId} or filters ->> 'workspaceId' = ${workspaceId}::text
      or ranges @> jsonb_build_array(jsonb_build_object('workspaceId', ${workspaceId}::text))
      or (workspace_id is null and filters ->> 'workspaceId' is null and ranges = '[]'))`
}

/** Returns null if the job doesn't exist or the member can't see it. */
export async function findVisibleJob(
  db: Queryable,
  viewer: Viewer,
  id: ExportJobId,
): Promise<ExportJob | null> {
  const row = await jobsOf(db, viewer).where('id', '=', id).executeTakeFirst()
  return row ? toJob(row) : null
}

/**
 * Members with access to the whole company see all of its jobs. Others see their own jobs and those created
 * for one of their workspaces, but none that reads a workspace they can't see (anymore).
 */
function jobsOf(db: Queryable, { companyId, userId, workspaceIds }: Viewer) {
  const jobs = db.selectFrom('export_job').selectAll().where('company_id', '=', companyId)
  if (workspaceIds === null) return jobs
  return jobs.where(sql<boolean>`
    (created_by = ${userId} or workspace_id = any (${workspaceIds}::uuid[])
      or (filters ->> 'workspaceId')::uuid = any (${workspaceIds}::uuid[]))
    and not exists (
      select 1 from jsonb_array_elements(ranges) as range
       where (range ->> 'workspaceId')::uuid <> all (${workspaceIds}::uuid[]))`)
}

/** The rule of `findVisibleJob`, for a job that is already loaded. */
export function canSeeJob({ companyId, userId, workspaceIds }: Viewer, job: ExportJob): boolean {
  if (job.companyId !== companyId) return false
  if (workspaceIds === null) return true
  const isVisible = (id: WorkspaceId | null) => id !== null && workspaceIds.includes(id)
  const isTheirs =
    job.createdBy === userId || isVisible(job.workspaceId) || isVisible(job.filterWorkspaceId)
  return isTheirs && job.ranges.every(({ workspaceId }) => isVisible(workspaceId))
}
