import type { Logger } from './logger.ts'

type LoopOptions = {
  name: string
  everyMs: number
  logger: Logger
  /**
   * One turn. It must be safe to run again after it failed half-way. It can return the time until the
   * next turn, in milliseconds.
   */
  run: (signal: AbortSignal) => Promise<number | void>
}

/**
 * A background duty: runs, waits, runs again, one turn at a time. A failed turn is logged and the
 * next one comes as planned. Disposal aborts the wait and lets a running turn end.
 */
export class Loop implements AsyncDisposable {
  readonly #options: LoopOptions
  readonly #stop = new AbortController()
  #timer: NodeJS.Timeout | null = null
  #turn: Promise<void> | null = null

  constructor(options: LoopOptions) {
    this.#options = options
    this.#schedule(options.everyMs)
  }

  /** Runs a turn now, or joins the one that runs. */
  runNow(): Promise<void> {
    this.#turn ??= this.#takeTurn()
    return this.#turn
  }

  #schedule(waitMs: number): void {
    if (this.#stop.signal.aborted) return
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.runNow(), waitMs)
    this.#timer.unref()
  }

  async #takeTurn(): Promise<void> {
    const { name, logger, run, everyMs } = this.#options
    let waitMs: number | void = everyMs
    try {
      waitMs = await run(this.#stop.signal)
    } catch (error) {
      logger.error({ event: 'loop.failed', loop: name, err: error })
    }
    this.#turn = null
    this.#schedule(waitMs ?? everyMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    if (this.#timer) clearTimeout(this.#timer)
    await this.#turn
  }
}
