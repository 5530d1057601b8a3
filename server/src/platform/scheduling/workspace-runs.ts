import { setTimeout as wait } from 'node:timers/promises'
import type { WorkspaceId } from '../id.ts'
import type { Logger } from '../logger.ts'
import { isOutage } from '../pg/pg-error.ts'
import { type MonotonicClock, monotonicClock } from '../time/clock.ts'

/** Pauses three seconds per second of work, because requests have priority on the database. */
const PAUSE_RATIO = 3

type RunsOptions = {
  /** Logged if a run fails. */
  event: string
  /** A workspace whose run failed waits this long, so that it doesn't hold up the others. */
  retryMs: number
  logger: Logger
  monotonic?: MonotonicClock
  pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** `overtaken`: another node was faster. `more`: more events are waiting. */
type RunOutcome = 'done' | 'more' | 'overtaken'

/** The background work of one workspace at a time. If it fails, only that workspace waits. */
export class WorkspaceRuns {
  readonly #options: RunsOptions
  readonly #nowMs: MonotonicClock
  readonly #retryAtMs = new Map<WorkspaceId, number>()

  constructor(options: RunsOptions) {
    this.#options = options
    this.#nowMs = options.monotonic ?? monotonicClock
  }

  /** The workspaces whose last run failed a short time ago. */
  get waiting(): WorkspaceId[] {
    for (const [workspaceId, atMs] of this.#retryAtMs) {
      if (atMs <= this.#nowMs()) this.#retryAtMs.delete(workspaceId)
    }
    return [...this.#retryAtMs.keys()]
  }

  /**
   * Runs the listed work until none is left, or another node is at work: this one would only do the same.
   * Lists it again after one run per workspace, so that a busy one doesn't starve the others.
   */
  async runAll<Work extends { workspaceId: WorkspaceId }>(
    list: (except: WorkspaceId[]) => Promise<Work[]>,
    run: (work: Work) => Promise<RunOutcome>,
    signal: AbortSignal,
  ): Promise<void> {
    for (;;) {
      const behind = await list(this.waiting)
      if (behind.length === 0) return
      for (const work of behind) {
        if (signal.aborted) return
        const ended = await this.run(work.workspaceId, () => run(work), signal)
        if (ended?.result === 'overtaken') return
      }
    }
  }

  /** Returns null if the run failed. Pauses afterwards. Rejects if the database is unreachable. */
  async run<T>(
    workspaceId: WorkspaceId,
    work: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<{ result: T; tookMs: number } | null> {
    const { event, retryMs, logger, pause = pauseFor } = this.#options
    const startedAtMs = this.#nowMs()
    const tookMs = () => this.#nowMs() - startedAtMs
    try {
      const result = await work()
      return { result, tookMs: tookMs() }
    } catch (error) {
      if (isOutage(error)) throw error
      logger.error({ event, workspaceId, err: error })
      this.#retryAtMs.set(workspaceId, this.#nowMs() + retryMs)
      return null
    } finally {
      await pause(tookMs() * PAUSE_RATIO, signal)
    }
  }
}

async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  // Shutdown aborts the pause, which needs no cleanup.
  await wait(ms, undefined, { signal }).catch(() => {})
}
