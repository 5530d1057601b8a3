import { type RawBuilder, type Selectable, sql } from 'kysely'
import { ApiError } from '../../../errors.ts'
import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import { type CompanyId, type UserId, type WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Tables } from '../../../platform/pg/tables.ts'
import { lockCompany } from '../../../tenancy/company-store.ts'
import { COMPANY_BOUNDS } from '../../../tenancy/plans.ts'
import {
  type ExportErrorCode,
  type ExportEvidence,
  type ExportFormat,
  type ExportJob,
  type ExportJobId,
  type ExportRange,
  type ExportSource,
  type ExportStatus,
  type FailedAttempt,
  OPEN_EXPORT_STATUSES,
} from './export-job.ts'
import { toJob, writeFilters, writeRanges } from './export-job-row.ts'
import type { ExportSchedule } from '../schedule/schedule.ts'

/** Whose jobs to access: a company key sees all of its company, a workspace key those of its workspace. */
export type JobOwner = { companyId: CompanyId; workspaceId: WorkspaceId | null }

/** The schedule of a job, and the end of the job's period. */
export type JobSchedule = Pick<ExportSchedule, 'templateId' | 'cadence' | 'periodEndMs'>

export type NewExportJob = JobOwner & {
  id: ExportJobId
  createdBy: UserId | null
  name: string | null
  source: ExportSource
  format: ExportFormat
  filter: EventFilter
  filterWorkspaceId: WorkspaceId | null
  evidence: ExportEvidence
  snapshotAtMs: number | null
  ranges: readonly ExportRange[]
  rowLimit: number
  rerunOf: ExportJobId | null
  /** Null if a member or a key creates it. */
  schedule: JobSchedule | null
  now: Date
  expiresAt: Date
}

/** Call it inside a transaction: it locks the company to count its open jobs. */
export async function insertExportJob(db: Queryable, job: NewExportJob): Promise<ExportJob> {
  await lockCompany(db, job.companyId)
  await refuseTooMany(db, job)
  const row = await db
    .insertInto('export_job')
    .values({
      company_id: job.companyId,
      id: job.id,
      workspace_id: job.workspaceId,
      created_by: job.createdBy,
      name: job.name,
      source: job.source,
      format: job.format,
      filters: writeFilters(job),
      ranges: writeRanges(job.ranges, null),
      row_limit: job.rowLimit,
      status: 'PENDING',
      rerun_of: job.rerunOf,
      ...(job.schedule && scheduleColumns(job.schedule, job.now)),
      created_at: job.now,
      expires_at: job.expiresAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toJob(row)
}

/** The first attempt to write the file is due at once. */
function scheduleColumns({ templateId, cadence, periodEndMs }: JobSchedule, now: Date) {
  return {
    template_id: templateId,
    cadence,
    period_end: new Date(periodEndMs),
    attempt_due_at: now,
  }
}

const OPEN_MAX = COMPANY_BOUNDS.openExportsMax

/**
 * PostgreSQL scans the company's jobs or all open jobs, whichever are fewer. An expired job doesn't count,
 * even before the worker has failed it.
 */
async function refuseTooMany(
  db: Queryable,
  { companyId, now }: Pick<NewExportJob, 'companyId' | 'now'>,
): Promise<void> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count
      from (select 1
              from export_job
             where company_id = ${companyId}
               and status in ('PENDING', 'RUNNING') and expires_at > ${now}
             limit ${OPEN_MAX}) as open`.execute(db)
  if ((rows[0]?.count ?? 0) < OPEN_MAX) return
  throw new ApiError('conflict', {
    message: `The company has ${OPEN_MAX} open exports, which is the maximum. Download or cancel some of them, or wait: each expires seven days after it was created. To list those that you can see, use the dashboard or GET /v1/exports with status=PENDING and status=RUNNING.`,
  })
}

/** Returns null if the job doesn't exist or has another owner. */
export async function findExportJob(
  db: Queryable,
  { companyId, workspaceId }: JobOwner,
  id: ExportJobId,
): Promise<ExportJob | null> {
  const row = await db
    .selectFrom('export_job')
    .selectAll()
    .where('company_id', '=', companyId)
    .where('id', '=', id)
    .$if(workspaceId !== null, (query) => query.where('workspace_id', '=', workspaceId))
    .executeTakeFirst()
  return row ? toJob(row) : null
}

/** The rule of `findExportJob`, for a job that is already loaded. */
export function ownsJob({ companyId, workspaceId }: JobOwner, job: ExportJob): boolean {
  return job.companyId === companyId && (workspaceId === null || job.workspaceId === workspaceId)
}

export type JobPage = {
  /** Null for any status. */
  status: ExportStatus | null
  /** The last job of the previous page. */
  before: { createdAt: Date; id: ExportJobId } | null
  limit: number
}

export function beforePosition(before: JobPage['before']): RawBuilder<boolean> {
  return sql<boolean>`(created_at, id) < (${before?.createdAt}, ${before?.id}::uuid)`
}

/** Newest first, without the jobs that name the hidden workspace. */
export async function listExportJobs(
  db: Queryable,
  { companyId, workspaceId, hidden = null }: JobOwner & { hidden?: WorkspaceId | null },
  { status, before, limit }: JobPage,
): Promise<ExportJob[]> {
  const rows = await db
    .selectFrom('export_job')
    .selectAll()
    .where('company_id', '=', companyId)
    .$if(workspaceId !== null, (query) => query.where('workspace_id', '=', workspaceId))
    .$if(hidden !== null, (query) =>
      query.where(sql<boolean>`filters ->> 'workspaceId' is distinct from ${hidden}::text`),
    )
    .$if(status !== null, (query) => query.where('status', '=', status))
    .$if(before !== null, (query) => query.where(beforePosition(before)))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toJob)
}

type JobKey = Pick<ExportJob, 'companyId' | 'id'>

/** PENDING → RUNNING. A RUNNING job can be opened again. Returns false if the job has ended. */
export async function startExportJob(db: Queryable, job: JobKey, now: Date): Promise<boolean> {
  const result = await db
    .updateTable('export_job')
    .set((eb) => ({
      status: 'RUNNING',
      started_at: eb.fn.coalesce('started_at', eb.val(now)),
    }))
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', 'in', OPEN_EXPORT_STATUSES)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Stores the progress of the download that is furthest. Returns false if the job is no longer running. */
export async function updateProgress(db: Queryable, job: JobKey, rows: number): Promise<boolean> {
  const result = await db
    .updateTable('export_job')
    .set((eb) => ({ rows_exported: eb.fn<number>('greatest', ['rows_exported', eb.val(rows)]) }))
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', '=', 'RUNNING')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

export type ExportResult = {
  rows: number
  isTruncated: boolean
  sha256: string
  bytes: number
  /** Of each range of the job. Null if it isn't known. */
  spans: ExportJob['spans']
}

/** RUNNING → SUCCEEDED. Returns false if it is no longer running: another download may have been first. */
export async function finishExportJob(
  db: Queryable,
  job: JobKey & Pick<ExportJob, 'ranges'>,
  { rows, isTruncated, sha256, bytes, spans }: ExportResult,
  now: Date,
): Promise<boolean> {
  const result = await db
    .updateTable('export_job')
    .set({
      status: 'SUCCEEDED',
      ranges: writeRanges(job.ranges, spans),
      rows_exported: rows,
      is_truncated: isTruncated,
      sha256: Buffer.from(sha256, 'hex'),
      bytes,
      error_code: null,
      failure_summary: null,
      last_attempt_at: null,
      last_attempt_code: null,
      last_attempt_summary: null,
      finished_at: now,
    })
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', '=', 'RUNNING')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Records a temporary error. The job stays open and shows what is wrong. */
export async function recordAttempt(
  db: Queryable,
  job: JobKey,
  { at, code, summary }: FailedAttempt,
): Promise<void> {
  await db
    .updateTable('export_job')
    .set({ last_attempt_at: at, last_attempt_code: code, last_attempt_summary: summary })
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', 'in', OPEN_EXPORT_STATUSES)
    .execute()
}

/** Moves an open job to FAILED or CANCELED. Returns false if it had already ended. */
export async function endExportJob(
  db: Queryable,
  job: JobKey,
  end: { errorCode: ExportErrorCode; failureSummary: string; now: Date },
): Promise<boolean> {
  const result = await db
    .updateTable('export_job')
    .set({
      status: end.errorCode === 'canceled' ? 'CANCELED' : 'FAILED',
      error_code: end.errorCode,
      failure_summary: end.failureSummary,
      finished_at: end.now,
    })
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', 'in', OPEN_EXPORT_STATUSES)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/**
 * Fails jobs of one company without a complete download in time, and returns them. If another node is
 * processing a company, this one skips to the next.
 */
export async function expireExportJobs(
  db: Queryable,
  { now, limit }: { now: Date; limit: number },
): Promise<ExportJob[]> {
  const { rows } = await sql<Selectable<Tables['export_job']>>`
    update export_job j
       set status = 'FAILED', error_code = 'expired', finished_at = ${now},
           failure_summary = 'The job expired at ' || to_char(j.expires_at at time zone 'UTC',
                             'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' without a complete download.'
      from (select company_id, id
              from export_job
             where status in ('PENDING', 'RUNNING') and expires_at <= ${now}
               and company_id = (select company_id
                                   from export_job
                                  where status in ('PENDING', 'RUNNING') and expires_at <= ${now}
                                  order by expires_at
                                  limit 1
                                    for update skip locked)
             limit ${limit}
               for update skip locked) as due
     where j.company_id = due.company_id and j.id = due.id
 returning j.*`.execute(db)
  return rows.map(toJob)
}

/**
 * Deletes jobs that ended before the given time, except those whose files must be deleted first. Returns how
 * many.
 */
export async function deleteEndedJobs(
  db: Queryable,
  { before, limit }: { before: Date; limit: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from export_job
     where ctid = any(array(
             select ctid
               from export_job
              where finished_at < ${before} and parts_max = 0
              order by finished_at
              limit ${limit}
                for update skip locked))`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
