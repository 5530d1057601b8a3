import { ApiError } from '../errors.ts'

/**
 * So many hashes of passwords at once, so many more that wait, and the rest is refused. Each takes a
 * processor for 32 ms and 19 MiB, so a flood of logins is held here and never reaches the events.
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
    try {
      return await work()
    } finally {
      this.#leave()
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

  /** The place is handed on, so that nobody overtakes those that wait. */
  #leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#running -= 1
  }
}
