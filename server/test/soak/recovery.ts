type Waiter = { sinceMs: number; resolve: () => void }

/** Tracks when events are accepted, to measure how long each outage lasts. */
export class Recovery {
  faultCount = 0
  #isFaultActive = false
  #waiters: Waiter[] = []
  #lastAcceptedAtMs = 0
  #longestGapMs = 0

  /** True from the moment a fault begins until the service has recovered from it. */
  get isFaultActive(): boolean {
    return this.#isFaultActive
  }

  beginFault(): void {
    this.#isFaultActive = true
    this.faultCount += 1
    this.#lastAcceptedAtMs = performance.now()
    this.#longestGapMs = 0
  }

  /** Returns the longest time without an accepted event since the fault began. */
  endFault(): number {
    this.#isFaultActive = false
    return this.#longestGapMs
  }

  /** An event was accepted, in a request that began at this time. */
  accepted(requestedAtMs: number): void {
    const nowMs = performance.now()
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#lastAcceptedAtMs)
    this.#lastAcceptedAtMs = nowMs
    const isDue = ({ sinceMs }: Waiter) => sinceMs <= requestedAtMs
    for (const { resolve } of this.#waiters.filter(isDue)) resolve()
    this.#waiters = this.#waiters.filter((waiter) => !isDue(waiter))
  }

  /** Resolves when an event is accepted in a request that begins from now on. */
  nextAcceptance(): Promise<void> {
    const sinceMs = performance.now()
    return new Promise((resolve) => this.#waiters.push({ sinceMs, resolve }))
  }
}
