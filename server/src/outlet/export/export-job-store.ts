import { type Selectable, sql } from 'kysely'
import { type EventFilter, NO_FILTER } from '../../ledger/event-filter.ts'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import type { Tables } from '../../platform/tables.ts'
import {
  EXPORT_FORMATS,
  EXPORT_SOURCES,
  EXPORT_STATUSES,
  type ExportErrorCode,
  type ExportFormat,
  type ExportJob,
  type ExportJobId,
  type ExportRange,
  type ExportSource,
  isExportErrorCode,
  OPEN_STATUSES,
} from './export-job.ts'

/** Whose jobs: a company key sees all of its company's, a workspace key those of its workspace. */
export type JobOwner = { companyId: CompanyId; workspaceId: WorkspaceId | null }

export type NewExportJob = JobOwner & {
  id: ExportJobId
  source: ExportSource
  format: ExportFormat
  filter: EventFilter
  filterWorkspaceId: WorkspaceId | null
  ranges: readonly ExportRange[]
  rowLimit: number
  rerunOf: ExportJobId | null
  now: Date
  expiresAt: Date
}

export async function insertExportJob(db: Queryable, job: NewExportJob): Promise<ExportJob> {
  const row = await db
    .insertInto('export_job')
    .values({
      company_id: job.companyId,
      id: job.id,
      workspace_id: job.workspaceId,
      source: job.source,
      format: job.format,
      filters: JSON.stringify({ ...job.filter, workspaceId: job.filterWorkspaceId }),
      ranges: JSON.stringify(job.ranges),
      row_limit: job.rowLimit,
      status: 'PENDING',
      rerun_of: job.rerunOf,
      created_at: job.now,
      expires_at: job.expiresAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  return toJob(row)
}

/** Null for somebody else's as for one that does not exist. */
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

/** Newest first. */
export async function listExportJobs(
  db: Queryable,
  { companyId, workspaceId }: JobOwner,
  { before, limit }: { before: { createdAt: Date; id: ExportJobId } | null; limit: number },
): Promise<ExportJob[]> {
  const rows = await db
    .selectFrom('export_job')
    .selectAll()
    .where('company_id', '=', companyId)
    .$if(workspaceId !== null, (query) => query.where('workspace_id', '=', workspaceId))
    .$if(before !== null, (query) =>
      query.where(sql<boolean>`(created_at, id) < (${before?.createdAt}, ${before?.id}::uuid)`),
    )
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toJob)
}

type JobKey = Pick<ExportJob, 'companyId' | 'id'>

/** PENDING → RUNNING; a job that runs already may be opened again. False when it may not. */
export async function startExportJob(db: Queryable, job: JobKey, now: Date): Promise<boolean> {
  const result = await db
    .updateTable('export_job')
    .set((eb) => ({
      status: 'RUNNING',
      started_at: eb.fn.coalesce('started_at', eb.val(now)),
    }))
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', 'in', OPEN_STATUSES)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** How far the furthest download is. False when the job is no longer running. */
export async function noteProgress(db: Queryable, job: JobKey, rows: number): Promise<boolean> {
  const result = await db
    .updateTable('export_job')
    .set((eb) => ({ rows_exported: eb.fn<number>('greatest', ['rows_exported', eb.val(rows)]) }))
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', '=', 'RUNNING')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

export type ExportResult = { rows: number; isTruncated: boolean; sha256: string; bytes: number }

/** RUNNING → SUCCEEDED. False when it is no longer running: another download may have been first. */
export async function finishExportJob(
  db: Queryable,
  job: JobKey,
  { rows, isTruncated, sha256, bytes }: ExportResult,
  now: Date,
): Promise<boolean> {
  const result = await db
    .updateTable('export_job')
    .set({
      status: 'SUCCEEDED',
      rows_exported: rows,
      is_truncated: isTruncated,
      sha256: Buffer.from(sha256, 'hex'),
      bytes,
      error_code: null,
      failure_summary: null,
      finished_at: now,
    })
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', '=', 'RUNNING')
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Something that may pass: the job stays as open as it was, and says what is wrong. */
export async function noteTrouble(
  db: Queryable,
  job: JobKey,
  trouble: { errorCode: ExportErrorCode; failureSummary: string },
): Promise<void> {
  await db
    .updateTable('export_job')
    .set({ error_code: trouble.errorCode, failure_summary: trouble.failureSummary })
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('status', 'in', OPEN_STATUSES)
    .execute()
}

/** To FAILED or CANCELED, from a state that is not final. */
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
    .where('status', 'in', OPEN_STATUSES)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Fails jobs that nobody downloaded to the end in time. Returns how many. */
export async function expireExportJobs(
  db: Queryable,
  { now, limit }: { now: Date; limit: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    update export_job j
       set status = 'FAILED', error_code = 'expired', finished_at = ${now},
           failure_summary = 'The job expired at ' || to_char(j.expires_at at time zone 'UTC',
                             'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' without a complete download.'
      from (select company_id, id
              from export_job
             where status in ('PENDING', 'RUNNING') and expires_at <= ${now}
             limit ${limit}
               for update skip locked) as due
     where j.company_id = due.company_id and j.id = due.id`.execute(db)
  return Number(numAffectedRows ?? 0n)
}

type StoredFilter = EventFilter & { workspaceId: WorkspaceId | null }

function toJob(row: Selectable<Tables['export_job']>): ExportJob {
  const { workspaceId: filterWorkspaceId, ...filter }: StoredFilter = {
    ...NO_FILTER,
    ...JSON.parse(JSON.stringify(row.filters)),
  }
  const ranges: ExportRange[] = JSON.parse(JSON.stringify(row.ranges))
  const status = EXPORT_STATUSES.find((known) => known === row.status) ?? 'FAILED'
  return {
    id: assertId(row.id),
    companyId: assertId(row.company_id),
    workspaceId: row.workspace_id === null ? null : assertId(row.workspace_id),
    source: EXPORT_SOURCES.find((known) => known === row.source) ?? 'HOT',
    format: EXPORT_FORMATS.find((known) => known === row.format) ?? 'JSONL',
    filter,
    filterWorkspaceId,
    ranges,
    rowLimit: row.row_limit,
    status,
    rowsExported: row.rows_exported,
    isTruncated: row.is_truncated,
    sha256: row.sha256?.toString('hex') ?? null,
    bytes: row.bytes,
    errorCode: row.error_code !== null && isExportErrorCode(row.error_code) ? row.error_code : null,
    failureSummary: row.failure_summary,
    rerunOf: row.rerun_of === null ? null : assertId(row.rerun_of),
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    expiresAt: row.expires_at,
  }
}
