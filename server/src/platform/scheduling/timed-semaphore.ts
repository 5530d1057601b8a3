import { FairSemaphore, type SemaphoreLimits } from './fair-semaphore.ts'
import { ThreadShare } from './thread-share.ts'
import { isContended, requestShare } from './time-slice.ts'

/** About what a company uses that reads all the time, one read after another. */
const FREE_MS = 2_000
/** A company that has read less recently doesn't pause. */
const LIGHT_MS = 500

/**
 * A semaphore for reads that can keep the database busy for seconds but return few rows, so that they cost the
 * main thread nothing. A company that has held permits for longer than one read after another takes gets one at a
 * time, and pauses as long as it reads, while other companies are active. Without that, its reads would use all
 * cores of the database.
 */
export class TimedSemaphore {
  readonly #held = new ThreadShare({
    nowMs: () => performance.now(),
    isContended,
    freeMs: FREE_MS,
    lightMs: LIGHT_MS,
    pauseRatio: 1,
    // The permits limit all companies together.
    isSharedLimited: false,
  })
  readonly #semaphore: FairSemaphore

  constructor(limits: Omit<SemaphoreLimits, 'share'>) {
    const share = {
      pauseMs: (companyId: string) =>
        Math.max(requestShare.pauseMs(companyId), this.#held.pauseMs(companyId)),
      isOver: (companyId: string) => requestShare.isOver(companyId) || this.#held.isOver(companyId),
    }
    this.#semaphore = new FairSemaphore({ ...limits, share })
  }

  get isCrowded(): boolean {
    return this.#semaphore.isCrowded
  }

  /** Waits for a permit. The time until it is released counts as time that the company has read. */
  async take(companyId: string, signal: AbortSignal | null = null): Promise<Disposable> {
    const permit = await this.#semaphore.take(companyId, signal)
    const startedAtMs = performance.now()
    const release = () => {
      const ms = performance.now() - startedAtMs
      this.#held.charge(companyId, { cpuMs: ms, wallMs: ms })
      permit[Symbol.dispose]()
    }
    return { [Symbol.dispose]: release }
  }
}
