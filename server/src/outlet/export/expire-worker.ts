import type { Clock } from '../../platform/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/loop.ts'
import type { Queryable } from '../../platform/pg.ts'
import { deleteEndedJobs, expireExportJobs } from './export-job-store.ts'

const TURN_MS = 60_000
const JOB_KEPT_MS = 90 * 86_400_000
const JOBS_PER_STATEMENT_MAX = 1_000
/** Of each kind; the rest goes in the next turns. */
const STATEMENTS_PER_TURN_MAX = 300

type ExpireWorker = AsyncDisposable & { runNow: () => Promise<void> }

/** Ends export jobs that nobody downloaded in time, and removes those that ended 90 days ago. */
export function startExpireWorker({
  db,
  clock,
  logger,
}: {
  db: Queryable
  clock: Clock
  logger: Logger
}): ExpireWorker {
  const limit = JOBS_PER_STATEMENT_MAX
  const run = async (signal: AbortSignal): Promise<void> => {
    const now = new Date(clock())
    await untilDone(signal, () => expireExportJobs(db, { now, limit }))
    const before = new Date(clock() - JOB_KEPT_MS)
    await untilDone(signal, () => deleteEndedJobs(db, { before, limit }))
  }
  const loop = new Loop({ name: 'export-expire', everyMs: TURN_MS, logger, run })
  return { runNow: () => loop.runNow(), [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() }
}

async function untilDone(signal: AbortSignal, statement: () => Promise<number>): Promise<void> {
  for (let times = 0; times < STATEMENTS_PER_TURN_MAX && !signal.aborted; times += 1) {
    if ((await statement()) < JOBS_PER_STATEMENT_MAX) return
  }
}
