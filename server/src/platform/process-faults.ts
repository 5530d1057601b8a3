import type { Logger } from './logger.ts'
import type { Metrics } from './metrics.ts'

const ORIGINS = ['uncaughtException', 'unhandledRejection'] as const

type FaultOptions = {
  logger: Logger
  /** URL of the folder that contains only the code that writes events. */
  writerFolder: string
  /** Ends the process immediately, with an exit code that makes a supervisor restart it. */
  exit: () => void
}

/**
 * Handles uncaught exceptions. Until `markStarted`, each one ends the process. After that, the process
 * survives all but those from the code that writes events: they leave the writer's state unknown, and after
 * a restart it is read from the database again. See docs/decisions/0035.
 *
 * After disposal, Node handles uncaught exceptions again, by ending the process.
 */
export class ProcessFaults implements Disposable {
  readonly #options: FaultOptions
  readonly #listeners = new DisposableStack()
  #metrics: Metrics | null = null

  constructor(options: FaultOptions) {
    this.#options = options
    for (const origin of ORIGINS) {
      const listener = (error: unknown) => this.#handle(error, origin)
      process.on(origin, listener)
      this.#listeners.defer(() => void process.off(origin, listener))
    }
  }

  /** Call this once the service has started. */
  markStarted(metrics: Metrics): void {
    this.#metrics = metrics
    for (const origin of ORIGINS) metrics.exceptionsUncaught.inc({ origin }, 0)
  }

  #handle(error: unknown, origin: (typeof ORIGINS)[number]): void {
    const { logger, writerFolder, exit } = this.#options
    this.#metrics?.exceptionsUncaught.inc({ origin })
    if (this.#metrics !== null && !comesFrom(writerFolder, error)) {
      logger.error({ event: 'exception.uncaught', origin, err: error })
      return
    }
    logger.fatal({ event: 'service.failed', origin, err: error })
    exit()
  }

  [Symbol.dispose](): void {
    this.#listeners.dispose()
  }
}

const CAUSES_MAX = 10

/** True if the error, or one that caused it, has a stack frame in the folder. */
export function comesFrom(folder: string, error: unknown): boolean {
  let current = error
  for (let depth = 0; depth < CAUSES_MAX && current instanceof Error; depth += 1) {
    // Exclude the message, which may quote a caller.
    const frames = (current.stack ?? '').replace(current.message, '')
    if (frames.includes(folder)) return true
    current = current.cause
  }
  return false
}
