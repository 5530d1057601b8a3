import { ApiError } from '../../../errors.ts'
import { stoppable, StorageError } from '../../../platform/object-store/object-store.ts'
import { isOutage } from '../../../platform/pg/database.ts'
import { isRetryable } from '../../../platform/pg/pg-error.ts'
import { repeatWhileFull } from '../../../platform/pg/repeat-while-full.ts'
import { CompanyTurns } from '../../../platform/scheduling/company-turns.ts'
import { Loop } from '../../../platform/scheduling/loop.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../platform/time/time-units.ts'
import { lockCompany } from '../../../tenancy/company-store.ts'
import { listCustomerWorkspaces } from '../../../tenancy/workspace/workspace-store.ts'
import { exportResource } from '../job/export-job.ts'
import { raiseExportNotice, scheduleNotice } from '../job/export-notice.ts'
import { createExportJob, type ExportDeps } from '../exporter.ts'
import { dueAtOf, periodEndAfter, periodStartOf } from './schedule.ts'
import {
  type DueSchedule,
  findDueSchedule,
  hasScheduledJob,
  listFutureSchedules,
  moveSchedule,
  releaseFuturePeriods,
} from './schedule-store.ts'
import { storeDueExport, type StoreDeps } from './store-export.ts'
import { partKeyOf } from './stored-file.ts'
import { claimOldFiles, forgetFile, type OldFile } from './stored-file-store.ts'

const INTERVAL_MS = 60_000
const FILE_KEPT_MS = 90 * DAY_MS
/** After a problem with the schedule itself, such as a plan without exports. */
const PROBLEM_WAIT_MS = HOUR_MS
const UNEXPECTED_PROBLEM =
  'An unexpected error occurred. The operator can find it in the log as export.schedule-failed.'
/** Later runs handle the rest. */
const JOBS_PER_RUN_MAX = 100
const OLD_FILES_PER_RUN_MAX = 100

/** Exports scheduled templates to the storage of the archive, and deletes their files after 90 days. */
export function startScheduleWorker(deps: StoreDeps): Loop {
  const turns = new CompanyTurns()
  const run = async (signal: AbortSignal): Promise<void> => {
    const stopping = { ...deps, archive: stoppable(deps.archive, signal) }
    const bounds = { limit: 1, timesMax: JOBS_PER_RUN_MAX, signal }
    await restartFutureSchedules(deps)
    await repeatWhileFull(bounds, async () => Number(await createDueJob(stopping)))
    await repeatWhileFull(bounds, async () => Number(await storeDueExport(stopping, turns, signal)))
    await deleteOldFiles(stopping, signal)
  }
  return new Loop({ name: 'export-schedule', everyMs: INTERVAL_MS, logger: deps.logger, run })
}

/**
 * If the clock was ahead, schedules exported periods that have not ended yet, and wait for later ones. This resets
 * them to the current period.
 */
async function restartFutureSchedules({
  database: { db },
  clock,
  logger,
}: StoreDeps): Promise<void> {
  const nowMs = clock()
  for (const future of await listFutureSchedules(db, { nowMs, limit: JOBS_PER_RUN_MAX })) {
    const periodEndMs = periodEndAfter(future.cadence, nowMs)
    const next = { periodEndMs, dueAt: dueAtOf(periodEndMs), problem: null }
    const { templateId, companyId } = future
    await db.transaction().execute(async (trx) => {
      await lockCompany(trx, companyId)
      if (!(await moveSchedule(trx, future, next))) return
      await releaseFuturePeriods(trx, future, new Date(nowMs))
      logger.warn({ event: 'export.schedule-reset', templateId, dueAt: future.dueAt })
    })
  }
}

/** Another node created the job, or the schedule was changed. */
class ScheduleMovedError extends Error {
  override name = 'ScheduleMovedError'
}

/**
 * Creates the job of a schedule that is due, and moves the schedule. Returns false if none is due. A schedule
 * with a problem is moved too, so that it doesn't keep the others waiting.
 */
async function createDueJob(deps: ExportDeps): Promise<boolean> {
  const { database, clock, logger } = deps
  const due = await findDueSchedule(database.db, new Date(clock()))
  if (!due) return false
  try {
    await createScheduledJob(deps, due)
  } catch (error) {
    if (error instanceof ScheduleMovedError) return true
    if (isOutage(error)) throw error
    const { periodEndMs, templateId } = due
    if (isRetryable(error)) {
      // Such as a company that someone else has locked.
      const dueAt = new Date(clock() + MINUTE_MS)
      await moveSchedule(database.db, due, { periodEndMs, dueAt, problem: due.problem })
      return true
    }
    const isExpected = error instanceof ApiError
    if (!isExpected) logger.error({ event: 'export.schedule-failed', templateId, err: error })
    const problem = isExpected ? error.message : UNEXPECTED_PROBLEM
    const dueAt = new Date(clock() + PROBLEM_WAIT_MS)
    if (await moveSchedule(database.db, due, { periodEndMs, dueAt, problem })) {
      await raiseExportNotice(deps, scheduleNotice(due, problem))
    }
  }
  return true
}

/** Each period gets one job, because the transaction that creates it moves the schedule to the next one. */
async function createScheduledJob(deps: ExportDeps, due: DueSchedule): Promise<void> {
  const { companyId, templateId, cadence, periodEndMs, filterWorkspaceId, filter } = due
  const { db } = deps.database
  const nextEndMs = periodEndAfter(cadence, periodEndMs)
  const next = { periodEndMs: nextEndMs, dueAt: dueAtOf(nextEndMs), problem: null }
  await releaseFuturePeriods(db, due, new Date(deps.clock()))
  // It has one if the schedule was stopped and started again within its period.
  if (await hasScheduledJob(db, { companyId, templateId, cadence, periodEndMs })) {
    await moveSchedule(db, due, next)
    return
  }
  const fromMs = periodStartOf(cadence, periodEndMs)
  const request = {
    companyId,
    workspaceId: null,
    createdBy: null,
    name: due.name,
    plan: due.plan,
    filterWorkspaceId,
    workspaceIds:
      filterWorkspaceId === null
        ? await listCustomerWorkspaces(db, companyId)
        : [filterWorkspaceId],
    // A month is longer than the hot time of some plans.
    source: 'HOT_AND_ARCHIVED' as const,
    format: due.format,
    filter: { ...filter, fromMs, toMs: periodEndMs },
    evidence: due.evidence,
    limit: due.limit,
    schedule: { templateId, cadence, periodEndMs },
  }
  await createExportJob(deps, request, (insert) =>
    db.transaction().execute(async (trx) => {
      // First, because changes in the dashboard lock the company before the schedule.
      await lockCompany(trx, companyId)
      if (!(await moveSchedule(trx, due, next))) throw new ScheduleMovedError()
      const job = await insert(trx)
      const period = {
        from: new Date(fromMs).toISOString(),
        to: new Date(periodEndMs).toISOString(),
      }
      const { name, format, evidence } = job
      const what = { name, format, ...(evidence !== 'NONE' && { evidence }) }
      const metadata = { ...what, templateId, cadence, ...period }
      const entry = { action: 'EXPORT_REQUESTED', resource: exportResource(job), metadata } as const
      await deps.audit(trx, companyId, [entry])
      return job
    }),
  )
}

/** The job is deleted after its file, so no file is forgotten. */
async function deleteOldFiles(deps: ExportDeps, signal: AbortSignal): Promise<void> {
  const { database, clock } = deps
  const before = new Date(clock() - FILE_KEPT_MS)
  const files = await claimOldFiles(database.db, { before, limit: OLD_FILES_PER_RUN_MAX })
  for (const file of files) {
    if (signal.aborted) return
    await deleteFile(deps, file)
  }
}

/** A file that the storage refuses to delete doesn't keep the others. */
async function deleteFile({ database, archive, logger }: ExportDeps, file: OldFile): Promise<void> {
  try {
    for (let part = 1; part <= file.partsMax; part += 1) await archive.delete(partKeyOf(file, part))
    await forgetFile(database.db, file)
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    logger.warn({ event: 'export.file-kept', jobId: file.id, err: error })
  }
}
