import type { Logger } from '../logger.ts'

type QueueOptions<T> = {
  name: string
  waitingMax: number
  logger: Logger
  run: (item: T) => Promise<void>
}

/**
 * Runs work that no caller waits for, one item at a time and in order. A failure is logged,
 * and the queue continues with the next item. Disposal drops the waiting items, logs how many,
 * and waits for the running one.
 */
export class BackgroundQueue<T> implements AsyncDisposable {
  readonly #options: QueueOptions<T>
  readonly #waiting: T[] = []
  #worker: Promise<void> | null = null
  #isClosed = false

  constructor(options: QueueOptions<T>) {
    this.#options = options
  }

  /** Returns false, without adding the item, if the queue is full or closed. */
  push(item: T): boolean {
    if (this.#isClosed || this.#waiting.length >= this.#options.waitingMax) return false
    this.#waiting.push(item)
    this.#worker ??= this.#work()
    return true
  }

  async #work(): Promise<void> {
    const { name, logger, run } = this.#options
    for (let item = this.#waiting.shift(); item !== undefined; item = this.#waiting.shift()) {
      try {
        await run(item)
      } catch (error) {
        logger.error({ event: 'queue.failed', queue: name, err: error })
      }
    }
    this.#worker = null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    const dropped = this.#waiting.splice(0).length
    if (dropped > 0) {
      this.#options.logger.warn({ event: 'queue.dropped', queue: this.#options.name, dropped })
    }
    await this.#worker
  }
}
