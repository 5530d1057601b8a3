type Operation = { start: () => void; fail: (error: Error) => void }

/**
 * Runs operations that can't be canceled, at most `runningMax` at a time, each with a deadline. At the
 * deadline, or when the signal aborts, the caller gets an error. The operation keeps its slot until it
 * really ends, so hanging operations never exceed `runningMax`. If operations past their deadline take
 * all slots, further ones fail immediately.
 */
export class BoundedOperations {
  readonly #runningMax: number
  readonly #late: () => Error
  readonly #waiting = new Set<Operation>()
  readonly #running = new Set<Operation>()
  /** Running operations that are past their deadline. */
  readonly #overdue = new Set<Operation>()

  constructor({ runningMax, late }: { runningMax: number; late: () => Error }) {
    this.#runningMax = runningMax
    this.#late = late
  }

  /** The deadline includes the wait for a slot. */
  async run<T>(
    work: () => Promise<T>,
    { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
  ): Promise<T> {
    signal?.throwIfAborted()
    if (this.#overdue.size >= this.#runningMax) throw this.#late()
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const operation: Operation = {
      start: () => {
        const ended = () => this.#end(operation, timer)
        work().then(resolve, reject).finally(ended)
      },
      fail: reject,
    }
    const timer = setTimeout(() => this.#giveUp(operation), timeoutMs)
    // The running operation itself keeps the process alive.
    timer.unref()
    const leave = () => {
      if (this.#waiting.delete(operation)) clearTimeout(timer)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', leave)
    this.#waiting.add(operation)
    this.#startNext()
    try {
      return await promise
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }

  #startNext(): void {
    for (const operation of this.#waiting) {
      if (this.#running.size >= this.#runningMax) return
      this.#waiting.delete(operation)
      this.#running.add(operation)
      operation.start()
    }
  }

  #giveUp(operation: Operation): void {
    this.#waiting.delete(operation)
    if (this.#running.has(operation)) this.#overdue.add(operation)
    operation.fail(this.#late())
    if (this.#overdue.size < this.#runningMax) return
    for (const waiting of this.#waiting) waiting.fail(this.#late())
    this.#waiting.clear()
  }

  #end(operation: Operation, timer: NodeJS.Timeout): void {
    clearTimeout(timer)
    this.#running.delete(operation)
    this.#overdue.delete(operation)
    this.#startNext()
  }
}
