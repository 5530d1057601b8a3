type Waiting = { companyId: string; begin: () => void }

export type TurnLimits = {
  /** At once. */
  turnsMax: number
  /** How many may wait, of all companies and of one; who comes then is refused with `TurnsTaken`. */
  waitingMax: number
  waitingPerCompanyMax: number
}

/** More wait for a turn than may. */
export class TurnsTaken extends Error {}

/**
 * How many reads of a kind run at once on a node, whose connections are there for everybody. Who
 * waits comes in when a turn is over: the company that has the fewest turns, and of its reads, or of
 * two companies with as many, the one that waits longest. So a company with fifty reads, or with one
 * that searches years for nothing, delays another by a read and no more. Nobody may wait for a turn
 * who has one.
 */
export class FairTurns {
  readonly #limits: TurnLimits
  /** In the order they came. */
  readonly #waiting = new Set<Waiting>()
  /** Turns of each company that has any. */
  readonly #taken = new Map<string, number>()

  constructor(limits: TurnLimits) {
    this.#limits = limits
  }

  get isCrowded(): boolean {
    return this.#waiting.size > 0
  }

  async take(companyId: string, signal: AbortSignal | null = null): Promise<Disposable> {
    signal?.throwIfAborted()
    if (this.#takenInAll() < this.#limits.turnsMax) this.#begin(companyId)
    else await this.#wait(companyId, signal)
    return { [Symbol.dispose]: () => this.#end(companyId) }
  }

  async #wait(companyId: string, signal: AbortSignal | null): Promise<void> {
    this.#refuseCrowd(companyId)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting = { companyId, begin: resolve }
    const leave = () => {
      // One whose turn has come leaves it by its own disposal.
      if (this.#waiting.delete(waiting)) reject(signal?.reason)
    }
    this.#waiting.add(waiting)
    signal?.addEventListener('abort', leave)
    try {
      await promise
    } finally {
      signal?.removeEventListener('abort', leave)
    }
  }

  #refuseCrowd(companyId: string): void {
    const { waitingMax, waitingPerCompanyMax } = this.#limits
    const own = this.#waiting.values().filter((waiting) => waiting.companyId === companyId)
    if (this.#waiting.size >= waitingMax || own.toArray().length >= waitingPerCompanyMax) {
      throw new TurnsTaken(`${this.#waiting.size} wait for a turn`)
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
