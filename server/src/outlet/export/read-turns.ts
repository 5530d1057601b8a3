type Waiting = { companyId: string; begin: () => void }

/**
 * How many reads of downloads run at once on a node, whose connections are there for everybody. A
 * turn is one fetch: a page of the table, or a row group of the archive. Who waits comes in when a
 * turn is over: the company that has the fewest, and of its downloads, or of two companies with as
 * many, the one that waits longest. So a company with fifty downloads, or with one that searches
 * years for nothing, delays another by a fetch and no more. A client that takes its time has no turn
 * meanwhile. Nobody may wait for a turn who has one.
 */
export class ReadTurns {
  readonly #turnsMax: number
  /** In the order they came. */
  readonly #waiting = new Set<Waiting>()
  /** Turns of each company that has any. */
  readonly #taken = new Map<string, number>()

  constructor(turnsMax: number) {
    this.#turnsMax = turnsMax
  }

  get isCrowded(): boolean {
    return this.#waiting.size > 0
  }

  async take(companyId: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted()
    if (this.#takenInAll() < this.#turnsMax) this.#begin(companyId)
    else await this.#wait(companyId, signal)
    return { [Symbol.dispose]: () => this.#end(companyId) }
  }

  async #wait(companyId: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting = { companyId, begin: resolve }
    const leave = () => {
      // One whose turn has come leaves it by its own disposal.
      if (this.#waiting.delete(waiting)) reject(signal.reason)
    }
    this.#waiting.add(waiting)
    signal.addEventListener('abort', leave)
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  #begin(companyId: string): void {
    this.#taken.set(companyId, this.#takenBy(companyId) + 1)
  }

  #end(companyId: string): void {
    const left = this.#takenBy(companyId) - 1
    if (left === 0) this.#taken.delete(companyId)
    else this.#taken.set(companyId, left)
    const next = this.#next()
    if (!next) return
    this.#waiting.delete(next)
    // Before it knows: nobody who comes meanwhile may have its turn.
    this.#begin(next.companyId)
    next.begin()
  }

  #next(): Waiting | null {
    let next: Waiting | null = null
    for (const waiting of this.#waiting) {
      const isFewer = !next || this.#takenBy(waiting.companyId) < this.#takenBy(next.companyId)
      if (isFewer) next = waiting
    }
    return next
  }

  #takenBy(companyId: string): number {
    return this.#taken.get(companyId) ?? 0
  }

  #takenInAll(): number {
    return this.#taken.values().reduce((sum, turns) => sum + turns, 0)
  }
}
