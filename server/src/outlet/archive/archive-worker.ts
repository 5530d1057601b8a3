import type { Clock } from '../../platform/time/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { type ObjectStore, stoppable } from '../../platform/object-store/object-store.ts'
import { type Connection, Database, type Queryable } from '../../platform/pg/database.ts'
import { DAY_MS, HOUR_MS } from '../../platform/time/time-units.ts'
import type { ServiceAudit } from '../../tenancy/caller.ts'
import { ARCHIVE_CONNECTIONS_MAX, isRefusal } from './archive-deps.ts'
import { archiveLedger } from './archive-ledger.ts'
import type { ArchivedWorkspace } from './archive-store.ts'
import { recordFailures } from './record-failures.ts'

const INTERVAL_MS = HOUR_MS
/** A smaller run waits for more events, but no longer than a day. */
const THRESHOLDS = { eventsMin: 5_000, overdueMs: DAY_MS } as const

const RESULTS = ['complete', 'partial', 'failed'] as const

/** Archives events past their plan's hot time, every hour. */
export function startArchiveWorker({
  connection,
  db,
  audit,
  archive,
  clock,
  logger,
  cutSignal,
  metrics,
}: {
  connection: Connection
  /** With the serving role, which can append events. */
  db: Queryable
  audit: ServiceAudit
  archive: ObjectStore
  clock: Clock
  logger: Logger
  cutSignal: AbortSignal
  metrics: Metrics
}): Loop {
  for (const result of RESULTS) metrics.archiveRuns.inc({ result }, 0)
  const run = async (signal: AbortSignal): Promise<void> => {
    await using database = new Database({
      connection,
      role: 'annals_keeper',
      connectionsMax: ARCHIVE_CONNECTIONS_MAX,
      logger,
      cutSignal,
    })
    const failures: ArchivedWorkspace[] = []
    const deps = {
      database,
      connection,
      archive: stoppable(archive, signal),
      clock,
      logger,
      cutSignal,
      onFailure: (workspace: ArchivedWorkspace) => failures.push(workspace),
    }
    let result: (typeof RESULTS)[number] = 'failed'
    try {
      const request = { beforeMs: null, thresholds: THRESHOLDS }
      const report = await archiveLedger(deps, request, signal)
      if (report.events > 0) logger.info({ event: 'archive.done', ...report })
      result = report.failed === 0 ? 'complete' : 'partial'
      metrics.archiveEventsHeld.set(report.eventsHeld)
    } catch (error) {
      if (!isRefusal(error)) throw error
      logger.error({ event: 'archive.refused', reason: error.message, err: error.cause })
    } finally {
      // A run that the shutdown ended early left workspaces behind without a failure.
      if (!signal.aborted) metrics.archiveRuns.inc({ result })
      if (!signal.aborted && result === 'complete') metrics.archiveCompletedAt.set(clock() / 1_000)
      await recordFailures(failures, { db, audit, clock, logger })
    }
  }
  return new Loop({ name: 'archive', everyMs: INTERVAL_MS, logger, run })
}
