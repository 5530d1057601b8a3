import { Annals } from '../../../../sdk/src/annals.ts'
import { OperatorError } from '../../errors.ts'
import type { StopSignal, StopSignals } from '../../platform/stop-signals.ts'
import { explainClientError } from './client-error.ts'
import { ClientOutput } from './client-output.ts'
import { readTarget, type ApiTarget } from './target.ts'

export type ClientContext = { env: NodeJS.ProcessEnv; stopSignals: StopSignals }

/** What a command works with. */
export type ClientCommand = {
  target: ApiTarget
  annals: Annals
  output: ClientOutput
  /** Aborts on Ctrl-C and when the reader of the output has gone. */
  signal: AbortSignal
}

export type ClientRunOptions = { isEndless?: boolean; needsKey?: boolean }

const EXIT_CODES: Record<StopSignal, number> = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }
/** The SDK refuses an empty key. It is never sent: the commands that need a key ask for one first. */
const NO_KEY = 'none'

/**
 * Runs a command against the service. `isEndless` commands run until a stop signal, which is then success;
 * others exit with 128 and the number of the signal.
 */
export async function runClient<Options extends { json?: boolean }>(
  { env, stopSignals }: ClientContext,
  options: Options,
  run: (command: ClientCommand, options: Options) => Promise<void>,
  { isEndless = false, needsKey = true }: ClientRunOptions = {},
): Promise<void> {
  const target = readTarget(env)
  if (needsKey && target.apiKey === '') throw missingKeyError()
  const stop = new AbortController()
  stopSignals.onStop((signal) => {
    if (!isEndless) process.exitCode = EXIT_CODES[signal]
    stop.abort()
  })
  const output = new ClientOutput({ isJson: options.json === true, signal: stop.signal })
  output.onClosed(() => stop.abort())
  const annals = new Annals({ apiKey: target.apiKey || NO_KEY, baseUrl: target.url })
  try {
    await run({ target, annals, output, signal: stop.signal }, options)
  } catch (error) {
    // `runCommand` prints nothing if the exit code is that of a signal, or the output's reader has gone.
    if (stop.signal.aborted && (isEndless || output.isClosed)) return
    throw explainClientError(error, target)
  }
}

export function missingKeyError(): OperatorError {
  return new OperatorError(
    'ANNALS_API_KEY is not set. Create a key in the dashboard under Keys, then run: export ANNALS_API_KEY=annals_…',
  )
}
