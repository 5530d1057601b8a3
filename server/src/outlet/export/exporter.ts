import { ApiError } from '../../errors.ts'
import type { EventFilter } from '../../ledger/event-filter.ts'
import type { Clock } from '../../platform/clock.ts'
import { newId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store.ts'
import type { Database, Queryable } from '../../platform/pg.ts'
import { type Plan, PLAN_TERMS } from '../../tenancy/plans.ts'
import type { ExportFormat, ExportJob, ExportRange, ExportSource } from './export-job.ts'
import {
  endExportJob,
  findExportJob,
  insertExportJob,
  type JobOwner,
  type NewExportJob,
} from './export-job-store.ts'
import type { ExportTimeouts } from './export-timeouts.ts'
import { noteFailure } from './export-failure.ts'
import { type ExportReach, requestRestores, segmentsOf } from './readiness.ts'
import { takeSnapshot } from './snapshot.ts'

export type ExportDeps = {
  database: Database
  store: ObjectStore
  clock: Clock
  logger: Logger
  timeouts: ExportTimeouts
}

export type ExportRequest = JobOwner & {
  /** The member who asks for it; null: a key does. */
  createdBy: UserId | null
  plan: Plan
  /** The one that the filters name; null: none. */
  filterWorkspaceId: WorkspaceId | null
  /** What that comes to at this moment. */
  workspaceIds: readonly WorkspaceId[]
  source: ExportSource
  format: ExportFormat
  filter: EventFilter
  /** Null: as many as the plan allows. */
  limit: number | null
}

const DAY_MS = 86_400_000
const LIFE_MS = 7 * DAY_MS

/** Puts a job into the table within a transaction, which may hold more than that. */
export type AddJob = (insert: (tx: Queryable) => Promise<ExportJob>) => Promise<ExportJob>

/** A new job on the state of this moment. What it needs from a cold class is asked for at once. */
export async function createExport(
  deps: ExportDeps,
  request: ExportRequest,
  add: AddJob,
): Promise<ExportJob> {
  const { ranges, rowLimit, nowMs } = await planExport(deps, request)
  const job: NewExportJob = {
    id: newId<'export-job'>(nowMs),
    companyId: request.companyId,
    workspaceId: request.workspaceId,
    createdBy: request.createdBy,
    source: request.source,
    format: request.format,
    filter: request.filter,
    filterWorkspaceId: request.filterWorkspaceId,
    ranges,
    rowLimit,
    rerunOf: null,
    now: new Date(nowMs),
    expiresAt: new Date(nowMs + LIFE_MS),
  }
  const added = await add((tx) => insertExportJob(tx, job))
  await askForRestores(deps, added)
  return added
}

/** What a request comes to at this moment: the runs to read, and how many rows of them at most. */
export async function planExport(
  { database, clock }: ExportDeps,
  { plan, workspaceIds, source, filter, limit }: ExportRequest,
): Promise<{ ranges: ExportRange[]; rowLimit: number; nowMs: number }> {
  const rowsMax = rowsMaxOf(plan)
  const nowMs = clock()
  const hotSinceMs = nowMs - PLAN_TERMS[plan].hotDays * DAY_MS
  const ranges = await takeSnapshot(database.db, workspaceIds, { source, filter, hotSinceMs })
  return { ranges, rowLimit: Math.min(limit ?? rowsMax, rowsMax), nowMs }
}

/** The same rows again: the snapshot of the first job, and its limit as the plan now allows it. */
export async function rerunExport(
  deps: ExportDeps,
  job: ExportJob,
  by: Pick<ExportRequest, 'plan' | 'workspaceId' | 'createdBy'>,
  add: AddJob,
): Promise<ExportJob> {
  const nowMs = deps.clock()
  const again: NewExportJob = {
    id: newId<'export-job'>(nowMs),
    companyId: job.companyId,
    workspaceId: by.workspaceId,
    createdBy: by.createdBy,
    source: job.source,
    format: job.format,
    filter: job.filter,
    filterWorkspaceId: job.filterWorkspaceId,
    ranges: job.ranges,
    rowLimit: Math.min(job.rowLimit, rowsMaxOf(by.plan)),
    rerunOf: job.id,
    now: new Date(nowMs),
    expiresAt: new Date(nowMs + LIFE_MS),
  }
  const added = await add((tx) => insertExportJob(tx, again))
  await askForRestores(deps, added)
  return added
}

function rowsMaxOf(plan: Plan): number {
  const { exportRowsMax } = PLAN_TERMS[plan]
  if (exportRowsMax === null) throw new ApiError('plan_required')
  return exportRowsMax
}

/** If the storage fails, the job is created anyway and notes it: the download requests again. */
export async function askForRestores(
  deps: ExportDeps,
  job: ExportJob,
  reach: ExportReach = job,
): Promise<void> {
  try {
    await requestRestores(deps.store, segmentsOf(deps.database.db, reach), deps.timeouts)
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    await noteFailure(deps, job, error)
  }
}

/**
 * Ends a job that is open, and cuts downloads of it. False when it was canceled before, and stays so.
 */
export async function cancelExport(db: Queryable, job: ExportJob, now: Date): Promise<boolean> {
  const failureSummary = `The job was canceled at ${now.toISOString()}, while it was ${job.status}.`
  if (await endExportJob(db, job, { errorCode: 'canceled', failureSummary, now })) return true
  const ended = await findExportJob(db, { companyId: job.companyId, workspaceId: null }, job.id)
  if (ended?.status === 'CANCELED') return false
  throw new ApiError('conflict', {
    message: `The export ${job.id} is ${ended?.status ?? 'gone'}; only a PENDING or RUNNING one can be canceled.`,
  })
}
