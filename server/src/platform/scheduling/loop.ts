import type { Logger } from '../logger.ts'
import { type MonotonicClock, monotonicClock } from '../time/clock.ts'

/** Some loops run several times per second, and an outage must not fill the log. */
const SAME_FAILURE_INTERVAL_MS = 10_000

type LoopOptions = {
  name: string
  everyMs: number
  logger: Logger
  monotonic?: MonotonicClock
  /**
   * One run. It must be safe to repeat after a failure halfway. It can return the time until the next run,
   * in milliseconds.
   */
  run: (signal: AbortSignal) => Promise<number | void>
}

/**
 * A background task that runs repeatedly, one run at a time. After a failed run, the next one starts as
 * planned. The same failure is logged at most every ten seconds. Disposal cancels the wait, or waits for the
 * current run to end.
 */
export class Loop implements AsyncDisposable {
  readonly #options: LoopOptions
  readonly #stop = new AbortController()
  #timer: NodeJS.Timeout | null = null
  #running: Promise<void> | null = null
  #logged: { failure: string; atMs: number } | null = null

  constructor(options: LoopOptions) {
    this.#options = options
    this.#schedule(options.everyMs)
  }

  /** Starts a run now, or joins the current one. */
  runNow(): Promise<void> {
    this.#running ??= this.#runOnce()
    return this.#running
  }

  #schedule(waitMs: number): void {
    if (this.#stop.signal.aborted) return
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.runNow(), waitMs)
    this.#timer.unref()
  }

  async #runOnce(): Promise<void> {
    const { run, everyMs } = this.#options
    let waitMs: number | void = everyMs
    try {
      waitMs = await run(this.#stop.signal)
    } catch (error) {
      this.#logFailure(error)
    }
    this.#running = null
    this.#schedule(waitMs ?? everyMs)
  }

  #logFailure(error: unknown): void {
    const { name, logger, monotonic = monotonicClock } = this.#options
    const failure = String(error)
    const atMs = monotonic()
    const last = this.#logged
    if (last?.failure === failure && atMs - last.atMs < SAME_FAILURE_INTERVAL_MS) return
    this.#logged = { failure, atMs }
    logger.error({ event: 'loop.failed', loop: name, err: error })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    if (this.#timer) clearTimeout(this.#timer)
    await this.#running
  }
}
