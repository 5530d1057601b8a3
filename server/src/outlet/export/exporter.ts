import { ApiError } from '../../errors.ts'
import type { EventFilter } from '../../ledger/filter/event-filter.ts'
import type { ChainReads } from '../../ledger/replica/chain-reads.ts'
import { requestRestores } from '../../ledger/segment/restore.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { newId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import type { Span, SpanContext, Tracer } from '../../platform/otlp/tracer.ts'
import type { Database, Queryable } from '../../platform/pg/database.ts'
import { withArchivePermit } from '../../platform/scheduling/slot-scope.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import type { ServiceAudit } from '../../tenancy/caller.ts'
import { hotSinceMsOf, type Plan, PLAN_TERMS } from '../../tenancy/plans.ts'
import {
  evidenceOf,
  linesOf,
  refuseLines,
  refuseRerunLines,
  startAtReceipt,
} from './complete-export.ts'
import {
  type ExportEvidence,
  type ExportFormat,
  type ExportJob,
  type ExportRange,
  type ExportSource,
  isEmptyRange,
} from './job/export-job.ts'

import {
  endExportJob,
  findExportJob,
  insertExportJob,
  type JobOwner,
  type JobSchedule,
  type NewExportJob,
} from './job/export-job-store.ts'
import { type ExportScope, segmentsOf } from './export-segments.ts'
import type { ExportTimeouts } from './export-timeouts.ts'
import { recordFailure } from './job/export-failure.ts'
import { takeSnapshot } from './snapshot.ts'

export type ExportDeps = {
  database: Database
  /** Where the table is read. By default, in `database`. */
  reads?: ChainReads
  archive: ObjectStore
  clock: Clock
  logger: Logger
  timeouts: ExportTimeouts
  audit: ServiceAudit
  /** Null or missing without an OpenTelemetry endpoint. */
  tracer?: Tracer | null
}

/** The root span of one run of a job, with links to the request that created it and the one that runs it. */
export function startExportSpan(
  { tracer }: Pick<ExportDeps, 'tracer'>,
  { id, source, format }: ExportJob,
  request: SpanContext | null = null,
): Span | null {
  const span = tracer?.startRoot('export job') ?? null
  if (!span) return null
  span.attributes['annals.export.source'] = source
  span.attributes['annals.export.format'] = format
  for (const linked of [tracer?.recall(id), request]) if (linked) span.addLink(linked)
  return span
}

export type ExportRequest = JobOwner & {
  /** The member who requests it. Null for a key. */
  createdBy: UserId | null
  name: string | null
  plan: Plan
  /** The workspace named in the filters, or null if they name none. */
  filterWorkspaceId: WorkspaceId | null
  /** The workspaces that the filters currently select. */
  workspaceIds: readonly WorkspaceId[]
  source: ExportSource
  format: ExportFormat
  filter: EventFilter
  /** What the caller wants. The filters decide whether the job can be COMPLETE. */
  evidence: ExportEvidence
  /** Null for the maximum of the plan. */
  limit: number | null
  /** Only for jobs of a schedule. */
  schedule?: JobSchedule
}

const LIFE_MS = 7 * DAY_MS

/** Runs `insert` in a transaction, which may include other changes. */
export type AddJob = (insert: (tx: Queryable) => Promise<ExportJob>) => Promise<ExportJob>

/** Creates a job on a snapshot of the present state, and requests the restore of cold segments right away. */
export async function createExportJob(
  deps: ExportDeps,
  request: ExportRequest,
  add: AddJob,
): Promise<ExportJob> {
  const { ranges, evidence, rowLimit, nowMs } = await planExport(deps, request)
  if (evidence === 'COMPLETE') refuseLines(linesOf(ranges), rowLimit)
  const job: NewExportJob = {
    id: newId<'export-job'>(nowMs),
    companyId: request.companyId,
    workspaceId: request.workspaceId,
    createdBy: request.createdBy,
    name: request.name,
    source: request.source,
    format: request.format,
    filter: request.filter,
    filterWorkspaceId: request.filterWorkspaceId,
    evidence,
    snapshotAtMs: evidence === 'COMPLETE' ? nowMs : null,
    ranges,
    rowLimit,
    rerunOf: null,
    schedule: request.schedule ?? null,
    now: new Date(nowMs),
    expiresAt: new Date(nowMs + LIFE_MS),
  }
  const added = await add((tx) => insertExportJob(tx, job))
  await startRestores(deps, added)
  return added
}

type ExportPlan = {
  ranges: ExportRange[]
  evidence: ExportEvidence
  rowLimit: number
  nowMs: number
}

/** Resolves a request at this moment into the runs to read and the maximum number of rows. */
export async function planExport(
  deps: ExportDeps,
  { plan, workspaceIds, source, filter, evidence: requested, limit }: ExportRequest,
): Promise<ExportPlan> {
  const rowsMax = rowsMaxOf(plan)
  const nowMs = deps.clock()
  const hotSinceMs = hotSinceMsOf(plan, nowMs)
  const options = { source, filter, hotSinceMs }
  const snapshot = await takeSnapshot(deps.database.db, workspaceIds, options)
  const evidence = evidenceOf(requested, filter)
  const ranges =
    evidence === 'COMPLETE'
      ? await startAtReceipt(deps, snapshot, filter.fromMs)
      : snapshot.filter((range) => !isEmptyRange(range))
  return { ranges, evidence, rowLimit: Math.min(limit ?? rowsMax, rowsMax), nowMs }
}

/** Exports the same rows again: the first job's snapshot, with its limit capped by the current plan. */
export async function rerunExportJob(
  deps: ExportDeps,
  job: ExportJob,
  by: Pick<ExportRequest, 'plan' | 'workspaceId' | 'createdBy'>,
  add: AddJob,
): Promise<ExportJob> {
  const nowMs = deps.clock()
  const rowLimit = Math.min(job.rowLimit, rowsMaxOf(by.plan))
  if (job.evidence === 'COMPLETE') refuseRerunLines(linesOf(job.ranges), rowLimit)
  const again: NewExportJob = {
    id: newId<'export-job'>(nowMs),
    companyId: job.companyId,
    workspaceId: by.workspaceId,
    createdBy: by.createdBy,
    name: job.name,
    source: job.source,
    format: job.format,
    filter: job.filter,
    filterWorkspaceId: job.filterWorkspaceId,
    evidence: job.evidence,
    snapshotAtMs: job.snapshotAtMs,
    ranges: job.ranges,
    rowLimit,
    rerunOf: job.id,
    schedule: null,
    now: new Date(nowMs),
    expiresAt: new Date(nowMs + LIFE_MS),
  }
  const added = await add((tx) => insertExportJob(tx, again))
  await startRestores(deps, added)
  return added
}

function rowsMaxOf(plan: Plan): number {
  const { exportRowsMax } = PLAN_TERMS[plan]
  if (exportRowsMax === null) throw new ApiError('plan_required')
  return exportRowsMax
}

/**
 * If the storage fails, the job records the error and stays open. The download requests restores again, so the job
 * is also created while too many requests use the storage.
 */
export async function startRestores(
  deps: ExportDeps,
  job: ExportJob,
  reach: ExportScope = job,
): Promise<void> {
  try {
    const segments = segmentsOf(deps.database.db, reach)
    await withArchivePermit(() => requestRestores(deps.archive, segments, deps.timeouts))
  } catch (error) {
    if (error instanceof ApiError && error.code === 'overloaded') return
    if (!(error instanceof StorageError)) throw error
    await recordFailure(deps, job, error)
  }
}

/** Cancels an open job and aborts its downloads. Returns false if the job was already canceled. */
export async function cancelExportJob(db: Queryable, job: ExportJob, now: Date): Promise<boolean> {
  const failureSummary = `The job was canceled at ${now.toISOString()}, while it was ${job.status}.`
  if (await endExportJob(db, job, { errorCode: 'canceled', failureSummary, now })) return true
  const ended = await findExportJob(db, { companyId: job.companyId, workspaceId: null }, job.id)
  if (ended?.status === 'CANCELED') return false
  throw new ApiError('conflict', {
    message: `The export ${job.id} is ${ended?.status ?? 'deleted'}. Only a PENDING or RUNNING export can be canceled.`,
  })
}
