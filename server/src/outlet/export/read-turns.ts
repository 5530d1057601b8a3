/**
 * How many downloads read at once on a node, whose connections are there for everybody: the others
 * wait, first come first served. A client that takes its time has no turn meanwhile.
 */
export class ReadTurns {
  readonly #turnsMax: number
  readonly #waiting = new Set<() => void>()
  #taken = 0

  constructor(turnsMax: number) {
    this.#turnsMax = turnsMax
  }

  get isCrowded(): boolean {
    return this.#waiting.size > 0
  }

  async take(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted()
    if (this.#taken < this.#turnsMax) this.#taken += 1
    else await this.#wait(signal)
    return { [Symbol.dispose]: () => this.#pass() }
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = () => {
      // One whose turn has come leaves it by its own disposal.
      if (this.#waiting.delete(resolve)) reject(signal.reason)
    }
    this.#waiting.add(resolve)
    signal.addEventListener('abort', leave)
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** To the one who waits longest, or back. */
  #pass(): void {
    const [next] = this.#waiting
    if (!next) {
      this.#taken -= 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
