import { ApiError } from '../errors.ts'

/**
 * So many hashes of passwords at once, so many more that wait, and the others are refused. Each takes a
 * processor for 32 ms and 19 MiB, so a flood of logins is held here and never reaches the events. While
 * some wait there is a rest after each, as long as it took: a flood has half of a processor at most.
 */
export class HashingQueue {
  readonly #runningMax: number
  readonly #waitingMax: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor({ runningMax, waitingMax }: { runningMax: number; waitingMax: number }) {
    this.#runningMax = runningMax
    this.#waitingMax = waitingMax
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.#enter()
    const startedAtMs = performance.now()
    try {
      return await work()
    } finally {
      this.#leave(performance.now() - startedAtMs)
    }
  }

  async #enter(): Promise<void> {
    if (this.#running < this.#runningMax) {
      this.#running += 1
      return
    }
    if (this.#waiting.length >= this.#waitingMax) throw new ApiError('overloaded')
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  #leave(workedMs: number): void {
    if (this.#waiting.length === 0) this.#running -= 1
    else setTimeout(() => this.#handOn(), workedMs)
  }

  /** Nobody overtakes those that wait. */
  #handOn(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#running -= 1
  }
}
