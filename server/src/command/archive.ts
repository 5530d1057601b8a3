import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { ARCHIVE_CONNECTIONS_MAX, isRefusal } from '../outlet/archive/archive-deps.ts'
import { readArchiveId } from '../outlet/archive/archive-identity-store.ts'
import { archiveLedger, type ArchiveReport } from '../outlet/archive/archive-ledger.ts'
import type { ArchivedWorkspace } from '../outlet/archive/archive-store.ts'
import { recordFailures } from '../outlet/archive/record-failures.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import { createLogger } from '../platform/logger.ts'
import { Database } from '../platform/pg/database.ts'
import { parseRfc3339 } from '../platform/time/rfc3339.ts'
import { archiveUrlOf } from '../archive-url-of.ts'
import { openArchive } from '../open-archive.ts'
import { openCommandDataSource } from './open-command-data-source.ts'
import { auditAsOperator } from './operator.ts'
import { printLines } from './output/print.ts'

/**
 * `annals archive`: archives the events received before a given time, or those past their plan's hot
 * time. Exits with code 1 if there is no archive, if it belongs to another database, if the clock is
 * wrong, or if archiving a workspace fails.
 */
export async function archiveEvents(config: Config, options: { before?: string }): Promise<void> {
  const beforeMs = options.before === undefined ? null : parseRfc3339(options.before)
  if (options.before !== undefined && beforeMs === null) {
    throw new OperatorError(
      `--before must be an RFC 3339 date-time with an offset, such as 2026-03-01T00:00:00Z. Got "${options.before}".`,
    )
  }
  if (archiveUrlOf(config) === null) {
    throw new OperatorError(
      'Nothing was archived, because no archive is configured. Set ANNALS_ARCHIVE_URL; with ANNALS_DATABASE_URL, it has no default.',
    )
  }
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  const { connection } = stack.use(
    await openCommandDataSource(config, { logger, mayCreate: false }),
  )
  const database = stack.use(
    new Database({
      connection,
      role: 'annals_keeper',
      connectionsMax: ARCHIVE_CONNECTIONS_MAX,
      logger,
    }),
  )
  const archive = stack.use(
    openArchive(config, { readArchiveId: () => readArchiveId(database.db) }),
  )
  const failures: ArchivedWorkspace[] = []
  const onFailure = (workspace: ArchivedWorkspace) => failures.push(workspace)
  const deps = { connection, database, archive, clock, logger, onFailure }
  // Archives small runs too, because the operator asked for it now.
  const request = { beforeMs, thresholds: { eventsMin: 1, overdueMs: 0 } }
  try {
    printReport(await archiveLedger(deps, request, new AbortController().signal))
  } catch (error) {
    if (!isRefusal(error)) throw error
    throw new OperatorError(error.message, { cause: error })
  } finally {
    // The archiver's role can't append events.
    await using serving = new Database({
      connection,
      role: 'annals_serving',
      connectionsMax: 1,
      logger,
    })
    await recordFailures(failures, { db: serving.db, audit: auditAsOperator, clock, logger })
  }
}

function printReport({ events, workspaces, failed, refusals, ...left }: ArchiveReport): void {
  const { eventsHeld, workspacesBusy } = left
  const lines = [`archived ${events} events of ${workspaces} workspaces`]
  if (eventsHeld > 0)
    lines.push(`Skipped ${eventsHeld} events that have yet to be sent to webhooks.`)
  if (workspacesBusy > 0) {
    lines.push(`Skipped ${workspacesBusy} workspaces that another process is archiving.`)
  }
  if (failed > 0) lines.push(`FAILED: ${failed} workspaces could not be archived. See the log.`)
  lines.push(...refusals.map((sentence) => `annals: ${sentence}`))
  printLines(...lines)
  if (failed > 0) process.exitCode = 1
}
