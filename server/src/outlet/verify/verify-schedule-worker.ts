import { readHead } from '../../ledger/event-store.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { repeatWhileFull } from '../../platform/pg/repeat-while-full.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { MINUTE_MS } from '../../platform/time/time-units.ts'
import { tryInsertVerifyRun } from './verify-run-store.ts'
import { nextDueAt } from './verify-schedule.ts'
import { addSchedules, lockDueSchedule, moveVerifySchedule } from './verify-schedule-store.ts'

const INTERVAL_MS = 10_000
/** How long to wait if a member is already verifying the chain. */
const OCCUPIED_WAIT_MS = 10 * MINUTE_MS
const SCHEDULES_PER_STATEMENT_MAX = 1_000
/** Later passes handle the rest. */
const STATEMENTS_PER_PASS_MAX = 20

type WorkerDeps = {
  db: Queryable
  clock: Clock
  logger: Logger
  /** How often each chain is verified. */
  intervalMs: number
  /** Called if runs were created. */
  onCreated: () => void
}

/**
 * Creates a verification run of each chain once per interval. The transaction that creates a run also advances
 * its schedule, so several nodes create only one.
 */
export function startVerifyScheduleWorker(deps: WorkerDeps): Loop {
  const { db, clock, logger, intervalMs, onCreated } = deps
  const run = async (signal: AbortSignal): Promise<void> => {
    const timesMax = STATEMENTS_PER_PASS_MAX
    const limit = SCHEDULES_PER_STATEMENT_MAX
    await repeatWhileFull({ limit, timesMax, signal }, () =>
      addSchedules(db, { now: new Date(clock()), intervalMs, limit }),
    )
    let created = 0
    await repeatWhileFull({ limit: 1, timesMax, signal }, async () => {
      const outcome = await createDueRun(deps)
      if (outcome === 'created') created += 1
      return outcome === 'none' ? 0 : 1
    })
    if (created > 0) onCreated()
  }
  return new Loop({ name: 'verify-schedule', everyMs: INTERVAL_MS, logger, run })
}

/** `occupied`: a member is verifying the chain. */
async function createDueRun({
  db,
  clock,
  intervalMs,
}: WorkerDeps): Promise<'created' | 'occupied' | 'none'> {
  return await db.transaction().execute(async (trx) => {
    const now = new Date(clock())
    const due = await lockDueSchedule(trx, { now, intervalMs })
    if (!due) return 'none'
    const { workspaceId, companyId, dueAt } = due
    const total = (await readHead(trx, workspaceId))?.seq ?? 0
    const chain = { companyId, workspaceId, total }
    const run = await tryInsertVerifyRun(trx, { ...chain, createdBy: null, now })
    const nextAt = run
      ? nextDueAt(dueAt, now, intervalMs)
      : new Date(now.getTime() + Math.min(OCCUPIED_WAIT_MS, intervalMs))
    await moveVerifySchedule(trx, workspaceId, nextAt)
    return run ? 'created' : 'occupied'
  })
}
