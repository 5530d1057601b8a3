import { constants } from 'node:os'
import type { Config } from '../config.ts'
import { endProcess } from '../platform/end-process.ts'
import type { Logger } from '../platform/logger.ts'
import { type StopSignal, StopSignals } from '../platform/stop-signals.ts'
import { openDataSource, type DataSource } from '../data-source.ts'

/** PostgreSQL stops in less than a second unless its disk hangs. Orchestrators kill after 10 s or more. */
const STOP_MS_MAX = 9_500

/**
 * Opens the database for a command. On a stop signal, the process leaves the embedded engine, which stops
 * if no other process uses it, and exits with the code that shells report for the signal. It doesn't wait
 * for the command: its transaction is rolled back, and the operator can run it again.
 */
export async function openCommandDataSource(
  config: Config,
  {
    logger,
    mayCreate,
    mayBeMoved = false,
    serverWaitMsMax = 0,
  }: { logger: Logger; mayCreate: boolean; mayBeMoved?: boolean; serverWaitMsMax?: number },
): Promise<DataSource> {
  const options = { logger, mayCreate, mayBeMoved, serverWaitMsMax, exclusive: false }
  // Without an embedded engine there is nothing to clean up, and the signal simply ends the process.
  if (config.databaseUrl) return await openDataSource(config, options)
  const stop = new AbortController()
  const opening = openDataSource(config, { ...options, signal: stop.signal })
  new StopSignals().onStop((signal) => {
    const code = exitCodeOf(signal)
    const end = () => endProcess(code)
    // Tells `runCommand` that the stop causes all errors from now on.
    process.exitCode = code
    setTimeout(end, STOP_MS_MAX)
    stop.abort(new Error(`stopped by ${signal}`))
    void opening.then((dataSource) => dataSource[Symbol.asyncDispose]()).then(end, end)
  })
  return await opening
}

function exitCodeOf(signal: StopSignal): number {
  return 128 + constants.signals[signal]
}
