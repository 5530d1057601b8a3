import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { archiveLedger } from '../outlet/archive/archive-ledger.ts'
import { systemClock as clock } from '../platform/clock.ts'
import { createLogger } from '../platform/logger.ts'
import { Database } from '../platform/pg.ts'
import { parseRfc3339 } from '../platform/rfc3339.ts'
import { openArchive, openStore } from '../store.ts'

/** One holds the lock, one reads and writes. */
const CONNECTIONS_MAX = 2

/**
 * `annals archive`: moves events into the archive, those received before a time or those whose plan's
 * hot time is over. Exit code 1 when a workspace could not be archived.
 */
export async function archive(config: Config, options: { before?: string }): Promise<void> {
  const beforeMs = options.before === undefined ? null : parseRfc3339(options.before)
  if (options.before !== undefined && beforeMs === null) {
    throw new OperatorError(
      `--before must be an RFC 3339 date-time with an offset, such as 2026-03-01T00:00:00Z, got "${options.before}"`,
    )
  }
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  const { connection } = stack.use(await openStore(config, { logger, exclusive: false }))
  const store = stack.use(openArchive(config))
  const database = stack.use(
    new Database({ connection, role: 'annals_keeper', connectionsMax: CONNECTIONS_MAX, logger }),
  )
  const deps = { connection, database, store, clock, logger }
  // Whoever asks wants it now, however small the runs are.
  const wish = { beforeMs, patience: { eventsMin: 1, overdueMs: 0 } }
  const { events, workspaces, failed } = await archiveLedger(
    deps,
    wish,
    new AbortController().signal,
  )
  process.stdout.write(`archived ${events} events of ${workspaces} workspaces\n`)
  if (failed === 0) return
  process.stdout.write(`FAILED: ${failed} workspaces could not be archived; see the log\n`)
  process.exitCode = 1
}
