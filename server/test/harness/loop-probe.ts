import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * The longest piece of synchronous work on this thread, in CPU time, which a busy machine does not
 * change. An endless chain of immediates makes the loop turn without a pause, and the CPU time between
 * two of them is what ran in that turn.
 */
export class LoopProbe {
  #isRunning = false
  #longestUs = 0

  /** Runs the work, and returns the longest turn of the loop meanwhile, in milliseconds. */
  async longestTurnMs(work: () => Promise<unknown>): Promise<number> {
    this.#isRunning = true
    this.#longestUs = 0
    await new Promise<void>((resolve) => this.#watch(threadCpuUs(), resolve))
    try {
      await work()
      // What ran last counts as well.
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

/** All of it, now. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect === 'function') collect()
}
