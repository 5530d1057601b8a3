import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Measures the longest synchronous work on this thread, in CPU time, so that a busy machine doesn't
 * matter. An endless chain of immediates keeps the event loop turning, and the CPU time between two of
 * them is the work done in that turn.
 */
export class LoopProbe {
  #isRunning = false
  #longestUs = 0

  /** Runs the work and returns the longest turn of the event loop during it, in milliseconds. */
  async longestTurnMs(work: () => Promise<unknown>): Promise<number> {
    this.#isRunning = true
    this.#longestUs = 0
    await new Promise<void>((resolve) => this.#watch(threadCpuUs(), resolve))
    try {
      await work()
      // Include the last turn.
      await new Promise((resolve) => setImmediate(resolve))
    } finally {
      this.#isRunning = false
    }
    return this.#longestUs / 1_000
  }

  #watch(sinceUs: number, isWatching: () => void = () => {}): void {
    setImmediate(() => {
      const nowUs = threadCpuUs()
      this.#longestUs = Math.max(this.#longestUs, nowUs - sinceUs)
      isWatching()
      if (this.#isRunning) this.#watch(nowUs)
    })
  }
}

function threadCpuUs(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

/** Runs a full garbage collection. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect === 'function') collect()
}
