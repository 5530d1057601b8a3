import type { Clock } from '../../platform/time/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { repeatWhileFull } from '../../platform/pg/repeat-while-full.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import { deleteEndedJobs, expireExportJobs } from './export-job-store.ts'

const INTERVAL_MS = 60_000
const JOB_KEPT_MS = 90 * DAY_MS
const JOBS_PER_STATEMENT_MAX = 1_000
/** For expiring and for deleting. Later runs handle the rest. */
const STATEMENTS_PER_RUN_MAX = 300

/** Fails export jobs that weren't downloaded in time, and deletes those that ended 90 days ago. */
export function startExpireWorker({
  db,
  clock,
  logger,
}: {
  db: Queryable
  clock: Clock
  logger: Logger
}): Loop {
  const limit = JOBS_PER_STATEMENT_MAX
  const run = async (signal: AbortSignal): Promise<void> => {
    const bounds = { limit, timesMax: STATEMENTS_PER_RUN_MAX, signal }
    const now = new Date(clock())
    await repeatWhileFull(bounds, () => expireExportJobs(db, { now, limit }))
    const before = new Date(clock() - JOB_KEPT_MS)
    await repeatWhileFull(bounds, () => deleteEndedJobs(db, { before, limit }))
  }
  return new Loop({ name: 'export-expire', everyMs: INTERVAL_MS, logger, run })
}
