import type { Clock } from '../../platform/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/loop.ts'
import type { Queryable } from '../../platform/pg.ts'
import { expireExportJobs } from './export-job-store.ts'

const TURN_MS = 60_000
const JOBS_PER_STATEMENT_MAX = 1_000

type ExpireWorker = AsyncDisposable & { runNow: () => Promise<void> }

/** Ends export jobs that nobody downloaded in time. */
export function startExpireWorker({
  db,
  clock,
  logger,
}: {
  db: Queryable
  clock: Clock
  logger: Logger
}): ExpireWorker {
  const run = async (): Promise<void> => {
    const limit = JOBS_PER_STATEMENT_MAX
    while ((await expireExportJobs(db, { now: new Date(clock()), limit })) === limit);
  }
  const loop = new Loop({ name: 'export-expire', everyMs: TURN_MS, logger, run })
  return { runNow: () => loop.runNow(), [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() }
}
