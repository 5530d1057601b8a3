import type { Clock } from '../../platform/time/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { type Connection, Database } from '../../platform/pg/database.ts'
import { HOUR_MS } from '../../platform/time/time-units.ts'
import { ensurePartition, listStrayMonths } from './partition-store.ts'

const INTERVAL_MS = HOUR_MS
const BUSY_RETRY_MS = 60_000
const MONTHS_AHEAD = 3
const STRAY_MONTHS_MAX = 24

/**
 * Creates partitions months ahead and empties the default partition. That one receives events that no other
 * partition covers, after a service was off for months or a clock was wrong. Connects as the owner of the
 * tables, because the serving role can't create any.
 */
export function startPartitionWorker({
  connection,
  clock,
  logger,
  cutSignal,
  busyRetryMs = BUSY_RETRY_MS,
}: {
  connection: Connection
  clock: Clock
  logger: Logger
  cutSignal?: AbortSignal
  /** When to retry after a lock on the table was not available. */
  busyRetryMs?: number
}): Loop {
  const run = async (): Promise<number> => {
    await using database = new Database({
      connection,
      role: 'owner',
      connectionsMax: 1,
      logger,
      cutSignal,
    })
    // The coming months first: they need no move, so nothing keeps them from being created.
    const months = [
      ...Array.from({ length: MONTHS_AHEAD + 1 }, (_, n) => startOfMonthMs(clock(), n)),
      ...(await listStrayMonths(database.db, { limit: STRAY_MONTHS_MAX })),
    ]
    for (const monthMs of months) {
      const state = await ensurePartition(database.db, monthMs)
      if (state === 'exists') continue
      const month = new Date(monthMs).toISOString().slice(0, 7)
      if (state === 'busy') {
        // The other months need the same lock, and each attempt delays queries. No event is lost meanwhile:
        // the default partition stores the events of a month without a partition.
        logger.warn({ event: 'partition.busy', month })
        return busyRetryMs
      }
      if (state === 'tooLarge') logger.warn({ event: 'partition.kept', month })
      else logger.info({ event: 'partition.made', month })
    }
    return INTERVAL_MS
  }
  const loop = new Loop({ name: 'partition', everyMs: INTERVAL_MS, logger, run })
  void loop.runNow()
  return loop
}

function startOfMonthMs(nowMs: number, monthsAhead: number): number {
  const now = new Date(nowMs)
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + monthsAhead, 1)
}
