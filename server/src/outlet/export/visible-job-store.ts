import { type RawBuilder, sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import type { Viewer } from '../../tenancy/viewer.ts'
import type { ExportJob, ExportJobId } from './export-job.ts'
import { toJob } from './export-job-row.ts'
import { beforePlace, type JobPage } from './export-job-store.ts'

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
    .$if(before !== null, (query) => query.where(beforePlace(before)))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toJob)
}

/** Made for the workspace, or with rows of it among others; one of nothing is of no other workspace either. */
function isAbout(workspaceId: WorkspaceId | null): RawBuilder<boolean> {
  return sql<boolean>`
    (workspace_id = ${workspaceId} or filters ->> 'workspaceId' = ${workspaceId}::text
      or ranges @> jsonb_build_array(jsonb_build_object('workspaceId', ${workspaceId}::text))
      or (workspace_id is null and filters ->> 'workspaceId' is null and ranges = '[]'))`
}

/** Null for one that the member does not see as for one that does not exist. */
export async function findVisibleJob(
  db: Queryable,
  viewer: Viewer,
  id: ExportJobId,
): Promise<ExportJob | null> {
  const row = await jobsOf(db, viewer).where('id', '=', id).executeTakeFirst()
  return row ? toJob(row) : null
}

/**
 * Whoever has the whole company sees every job of it. Others see those that were made for a workspace
 * of theirs, and their own; and none that reads a workspace which they do not see (any more).
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
export function seesJob({ companyId, userId, workspaceIds }: Viewer, job: ExportJob): boolean {
  if (job.companyId !== companyId) return false
  if (workspaceIds === null) return true
  const isGiven = (id: WorkspaceId | null) => id !== null && workspaceIds.includes(id)
  const isTheirs =
    job.createdBy === userId || isGiven(job.workspaceId) || isGiven(job.filterWorkspaceId)
  return isTheirs && job.ranges.every(({ workspaceId }) => isGiven(workspaceId))
}
