import type { Clock } from '../../platform/time/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { repeatWhileFull } from '../../platform/pg/repeat-while-full.ts'
import { deleteExpiredRows, EXPIRING_TABLES } from './expired-row-store.ts'

const INTERVAL_MS = 60_000
const ROWS_PER_STATEMENT_MAX = 1_000
/** Per table. Later runs delete the rest. */
const STATEMENTS_PER_RUN_MAX = 100

/** Deletes expired sessions, one-time links, sign-in challenges and used sign-ins, which no longer work. */
export function startSignInSweepWorker({
  db,
  clock,
  logger,
}: {
  db: Queryable
  clock: Clock
  logger: Logger
}): Loop {
  const limit = ROWS_PER_STATEMENT_MAX
  const run = async (signal: AbortSignal): Promise<void> => {
    const bounds = { limit, timesMax: STATEMENTS_PER_RUN_MAX, signal }
    const now = new Date(clock())
    for (const table of EXPIRING_TABLES) {
      await repeatWhileFull(bounds, () => deleteExpiredRows(db, table, { now, limit }))
    }
  }
  return new Loop({ name: 'sign-in-sweep', everyMs: INTERVAL_MS, logger, run })
}
