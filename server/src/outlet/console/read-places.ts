import { ApiError } from '../../errors.ts'

const RETRY_SECONDS = 5

/**
 * So many reads of the explorer at once on a node, whoever asks, and so many more that wait. A search
 * may take seconds; without a bound a few of them would hold every connection, and calls with keys,
 * which need one for a moment, would be refused.
 */
export class ReadPlaces {
  readonly #readsMax: number
  readonly #waitingMax: number
  readonly #waiting: (() => void)[] = []
  #reads = 0

  constructor({ readsMax, waitingMax }: { readsMax: number; waitingMax: number }) {
    this.#readsMax = readsMax
    this.#waitingMax = waitingMax
  }

  async run<T>(read: () => Promise<T>): Promise<T> {
    await this.#enter()
    try {
      return await read()
    } finally {
      this.#leave()
    }
  }

  async #enter(): Promise<void> {
    if (this.#reads < this.#readsMax) {
      this.#reads += 1
      return
    }
    if (this.#waiting.length >= this.#waitingMax) {
      throw new ApiError('overloaded', {
        message: 'Too many searches run on this node. Retry after the given delay.',
        retryAfterSeconds: RETRY_SECONDS,
      })
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** The place is handed on, so that nobody overtakes those that wait. */
  #leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#reads -= 1
  }
}
