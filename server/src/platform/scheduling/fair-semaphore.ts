type Waiting = {
  companyId: string
  caller: string
  /** Counts up. */
  arrival: number
  begin: () => void
  leave: (reason: unknown) => void
}

export type SemaphoreLimits = {
  /** The maximum number of concurrent permits. */
  permitsMax: number
  /** The maximum per company, even if permits are free. Unlimited by default. */
  permitsPerCompanyMax?: number
  /** How many callers can wait, in total and per company. Further callers get a `QueueFullError`. */
  waitingMax: number
  waitingPerCompanyMax: number
  /** How long a caller waits before it gets a `QueueFullError`. Unlimited by default. */
  waitMsMax?: number
  /** How much of the main thread a company can use at the moment. Unlimited by default. */
  share?: {
    /** How long the company has to pause. */
    pauseMs: (companyId: string) => number
    /** Whether the company has recently used more than its share. */
    isOver: (companyId: string) => boolean
  }
}

/** No permit was available: too many callers are waiting, or this one waited too long. */
export class QueueFullError extends Error {}

/**
 * Limits the number of concurrent reads of a kind on a node, because all callers share its connections and
 * its main thread. A released permit goes to the company with the fewest permits, and among equals to the one
 * that has waited longest. The callers of a company, such as its keys and members, take turns, so that a key
 * with hundreds of requests doesn't delay the member who revokes it. A caller that has a permit must not wait
 * for another.
 *
 * Without `permitsPerCompanyMax`, a company with fifty reads delays another company by one read, however
 * long that takes. With it, some permits stay free for other companies. With `share`, a company that has
 * used too much of the main thread gets one permit at a time, with pauses in between.
 */
export class FairSemaphore {
  readonly #limits: SemaphoreLimits
  /** In order of arrival. */
  readonly #waiting = new Set<Waiting>()
  /** The number of permits of each company that has any. */
  readonly #permits = new Map<string, number>()
  /** The number of the last permit of each caller that got one while others waited. */
  readonly #lastGrants = new Map<string, number>()
  #grants = 0
  #arrivals = 0
  /** Fires when the first pause ends. */
  #timer: { endsAtMs: number; timeout: NodeJS.Timeout } | null = null

  constructor(limits: SemaphoreLimits) {
    this.#limits = limits
  }

  /** Whether a caller waits for a permit to be released. Callers that pause don't count. */
  get isCrowded(): boolean {
    return this.#waiting.values().some(({ companyId }) => this.#pauseMs(companyId) === 0)
  }

  async take(
    companyId: string,
    signal: AbortSignal | null = null,
    caller = companyId,
  ): Promise<Disposable> {
    signal?.throwIfAborted()
    const permit = this.tryTake(companyId)
    if (permit) return permit
    await this.#wait(companyId, caller, signal)
    return this.#permitFor(companyId)
  }

  /** Null if the caller would have to wait. A caller that has a permit can request more this way. */
  tryTake(companyId: string): Disposable | null {
    if (!this.#isFree || !this.#mayAcquire(companyId)) return null
    this.#acquire(companyId)
    return this.#permitFor(companyId)
  }

  #permitFor(companyId: string): Disposable {
    return { [Symbol.dispose]: () => this.#release(companyId) }
  }

  async #wait(companyId: string, caller: string, signal: AbortSignal | null): Promise<void> {
    this.#makeRoom(companyId, caller)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = (reason: unknown) => {
      // If the permit was already granted, the caller releases it.
      if (this.#waiting.delete(waiting)) reject(reason)
    }
    const arrival = (this.#arrivals += 1)
    const waiting: Waiting = { companyId, caller, arrival, begin: resolve, leave }
    const { waitMsMax } = this.#limits
    const late = () => leave(new QueueFullError(`no permit within ${waitMsMax} ms`))
    const timer = waitMsMax === undefined ? undefined : setTimeout(late, waitMsMax)
    const abort = () => leave(signal?.reason)
    this.#waiting.add(waiting)
    signal?.addEventListener('abort', abort)
    this.#awaitPause()
    try {
      await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
  }

  /** If the queue of a company is full, the caller with the most requests in it loses the newest of them. */
  #makeRoom(companyId: string, caller: string): void {
    const { waitingMax, waitingPerCompanyMax } = this.#limits
    const full = () => new QueueFullError(`${this.#waiting.size} requests are waiting`)
    if (this.#waiting.size >= waitingMax) throw full()
    const own = [...this.#waiting].filter((waiting) => waiting.companyId === companyId)
    if (own.length < waitingPerCompanyMax) return
    const byCaller = Map.groupBy(own, (waiting) => waiting.caller)
    const [most] = [...byCaller.values()].toSorted((x, y) => y.length - x.length)
    const ownCount = byCaller.get(caller)?.length ?? 0
    if (!most || most.length <= ownCount + 1) throw full()
    most.at(-1)?.leave(full())
  }

  #acquire(companyId: string): void {
    this.#permits.set(companyId, this.#permitsOf(companyId) + 1)
  }

  #release(companyId: string): void {
    const permitsLeft = this.#permitsOf(companyId) - 1
    if (permitsLeft === 0) this.#permits.delete(companyId)
    else this.#permits.set(companyId, permitsLeft)
    this.#resumeWaiting()
  }

  /** `resumed` is a company whose pause has just ended. */
  #resumeWaiting(resumed: string | null = null): void {
    while (this.#isFree) {
      const next = this.#next(resumed)
      if (!next) break
      this.#waiting.delete(next)
      // Count the permit before the caller resumes, so that no later caller can take it.
      this.#acquire(next.companyId)
      this.#noteGrant(next.caller)
      next.begin()
      if (next.companyId === resumed) resumed = null
    }
    this.#awaitPause()
  }

  #noteGrant(caller: string): void {
    if (this.#waiting.size === 0 || this.#lastGrants.size >= this.#limits.waitingMax) {
      this.#lastGrants.clear()
    }
    this.#lastGrants.set(caller, (this.#grants += 1))
  }

  #next(resumed: string | null): Waiting | null {
    const next = new Map<string, Waiting>()
    for (const waiting of this.#waiting) {
      const { companyId } = waiting
      const other = next.get(companyId)
      if (other ? this.#isCallerBefore(waiting, other) : this.#mayAcquire(companyId, resumed)) {
        next.set(companyId, waiting)
      }
    }
    const byPermits = [...next.values()].toSorted(
      (a, b) =>
        this.#permitsOf(a.companyId) - this.#permitsOf(b.companyId) || a.arrival - b.arrival,
    )
    return byPermits[0] ?? null
  }

  /** `other` has waited longer. */
  #isCallerBefore(waiting: Waiting, other: Waiting): boolean {
    return this.#lastGrantOf(waiting.caller) < this.#lastGrantOf(other.caller)
  }

  #lastGrantOf(caller: string): number {
    return this.#lastGrants.get(caller) ?? 0
  }

  /**
   * A paused company gets a permit when its pause ends, even if others have extended the pause meanwhile.
   * Otherwise it could wait forever.
   */
  #awaitPause(): void {
    if (!this.#limits.share || !this.#isFree) return
    let first: { companyId: string; pauseMs: number } | null = null
    for (const companyId of new Set(this.#waiting.values().map((waiting) => waiting.companyId))) {
      if (this.#isAtLimit(companyId)) continue
      const pauseMs = this.#pauseMs(companyId)
      if (!first || pauseMs < first.pauseMs) first = { companyId, pauseMs }
    }
    if (!first) return
    const { companyId, pauseMs } = first
    const endsAtMs = performance.now() + pauseMs
    if (this.#timer && this.#timer.endsAtMs <= endsAtMs) return
    clearTimeout(this.#timer?.timeout)
    const resume = () => {
      this.#timer = null
      this.#resumeWaiting(companyId)
    }
    this.#timer = { endsAtMs, timeout: setTimeout(resume, pauseMs) }
  }

  #mayAcquire(companyId: string, resumed: string | null = null): boolean {
    if (this.#isAtLimit(companyId)) return false
    return companyId === resumed || this.#pauseMs(companyId) === 0
  }

  get #isFree(): boolean {
    return this.#permitsInUse() < this.#limits.permitsMax
  }

  #isAtLimit(companyId: string): boolean {
    const permits = this.#permitsOf(companyId)
    const { permitsPerCompanyMax = Number.POSITIVE_INFINITY, share } = this.#limits
    return permits >= permitsPerCompanyMax || (permits > 0 && share?.isOver(companyId) === true)
  }

  #pauseMs(companyId: string): number {
    return this.#limits.share?.pauseMs(companyId) ?? 0
  }

  #permitsOf(companyId: string): number {
    return this.#permits.get(companyId) ?? 0
  }

  #permitsInUse(): number {
    return this.#permits.values().reduce((sum, permits) => sum + permits, 0)
  }
}
