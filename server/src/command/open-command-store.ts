import { constants } from 'node:os'
import type { Config } from '../config.ts'
import { endProcess } from '../platform/end-process.ts'
import type { Logger } from '../platform/logger.ts'
import { type StopSignal, StopSignals } from '../platform/stop-signals.ts'
import { openStore, type Store } from '../store.ts'

/** PostgreSQL stops in less than a second unless its disk hangs. Orchestrators kill after 10 s or more. */
const STOP_MS_MAX = 9_500

/**
 * The database for a command. If a stop signal arrives, the process leaves the embedded engine, which
 * stops if no other process uses it, and exits with the code that shells report for the signal. The
 * command's work isn't waited for: its transaction is rolled back, and it can run again.
 */
export async function openCommandStore(
  config: Config,
  { logger, mayCreate }: { logger: Logger; mayCreate: boolean },
): Promise<Store> {
  const options = { logger, mayCreate, exclusive: false }
  // Without an engine there is nothing to leave, and a signal ends the process by itself.
  if (config.databaseUrl) return await openStore(config, options)
  const stop = new AbortController()
  const opening = openStore(config, { ...options, signal: stop.signal })
  new StopSignals().onStop((signal) => {
    const code = exitCodeOf(signal)
    const end = () => endProcess(code)
    // Tells `runCommand` that errors from now on are caused by the stop.
    process.exitCode = code
    setTimeout(end, STOP_MS_MAX)
    stop.abort(new Error(`stopped by ${signal}`))
    void opening.then((store) => store[Symbol.asyncDispose]()).then(end, end)
  })
  return await opening
}

function exitCodeOf(signal: StopSignal): number {
  return 128 + constants.signals[signal]
}
