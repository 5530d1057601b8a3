import type { Clock } from '../../../platform/time/clock.ts'
import type { Logger } from '../../../platform/logger.ts'
import { Loop } from '../../../platform/scheduling/loop.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { repeatWhileFull } from '../../../platform/pg/repeat-while-full.ts'
import { DAY_MS } from '../../../platform/time/time-units.ts'
import type { ServiceAudit } from '../../../tenancy/caller.ts'
import { raiseNotices } from '../../../tenancy/notice/notice-store.ts'
import { exportResource } from './export-job.ts'
import { deleteEndedJobs, expireExportJobs } from './export-job-store.ts'
import { exportNotice } from './export-notice.ts'

const INTERVAL_MS = 60_000
const JOB_KEPT_MS = 90 * DAY_MS
const JOBS_PER_STATEMENT_MAX = 1_000
/** Fewer, because each has an audit entry, and the company's own chain is locked meanwhile. */
const EXPIRED_PER_TRANSACTION_MAX = 100
/** For expiring and for deleting. Later runs handle the rest. */
const STATEMENTS_PER_RUN_MAX = 300

/** Fails export jobs that weren't downloaded in time, and deletes those that ended 90 days ago. */
export function startExpireWorker({
  db,
  clock,
  logger,
  audit,
}: {
  db: Queryable
  clock: Clock
  logger: Logger
  audit: ServiceAudit
}): Loop {
  const limit = JOBS_PER_STATEMENT_MAX
  const run = async (signal: AbortSignal): Promise<void> => {
    const bounds = { limit, timesMax: STATEMENTS_PER_RUN_MAX, signal }
    const now = new Date(clock())
    await repeatWhileFull({ ...bounds, limit: 1 }, () => expireJobs({ db, audit }, now))
    const before = new Date(clock() - JOB_KEPT_MS)
    await repeatWhileFull(bounds, () => deleteEndedJobs(db, { before, limit }))
  }
  return new Loop({ name: 'export-expire', everyMs: INTERVAL_MS, logger, run })
}

/** Expires jobs of one company together with their audit entries. Returns how many. */
async function expireJobs(
  { db, audit }: { db: Queryable; audit: ServiceAudit },
  now: Date,
): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const expired = await expireExportJobs(trx, { now, limit: EXPIRED_PER_TRANSACTION_MAX })
    const [first] = expired
    if (!first) return 0
    const action = 'EXPORT_EXPIRED' as const
    const entries = expired.map((job) => ({ action, resource: exportResource(job) }))
    const notices = expired.map((job) => exportNotice(job, 'expired'))
    await raiseNotices(trx, notices, now.getTime())
    await audit(trx, first.companyId, entries)
    return expired.length
  })
}
