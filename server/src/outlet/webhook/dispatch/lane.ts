import { PROBE_AFTER_FAILURES } from './settle-store.ts'

const LIMIT_START = 8
const LIMIT_MAX = 64
/** This many quick responses raise the limit by one. */
const RESPONSES_PER_STEP = 4
/** A receiver that takes longer is busy enough, so the limit doesn't grow. */
const QUICK_MS_MAX = 2_000

/**
 * Limits the concurrent deliveries of one webhook on this node. The limit grows while the receiver responds
 * well and is halved on each failure. After many failures in a row it is one, the probe. As many deliveries
 * again are kept ready, so that the receiver never waits for our database.
 */
export class Lane<Work> {
  readonly #send: (work: Work) => void
  #limit = LIMIT_START
  #goodResponses = 0
  #isProbing = false
  #inFlight = 0
  readonly #ready: Work[] = []

  constructor(send: (work: Work) => void) {
    this.#send = send
  }

  get heldCount(): number {
    return this.#inFlight + this.#ready.length
  }

  get limit(): number {
    return this.#isProbing ? 1 : Math.floor(this.#limit)
  }

  get isProbing(): boolean {
    return this.#isProbing
  }

  /** Takes the count from the database, because other nodes send to the same receiver. */
  noteFailureCount(failureCount: number): void {
    this.#isProbing = failureCount >= PROBE_AFTER_FAILURES
  }

  /**
   * How many more to fetch. 0 while enough are ready, because many small fetches cost more than a few
   * large.
   */
  room(): number {
    if (this.#isProbing) return this.heldCount === 0 ? 1 : 0
    return this.heldCount > this.limit ? 0 : 2 * this.limit - this.heldCount
  }

  add(works: readonly Work[]): void {
    this.#ready.push(...works)
    this.#pump()
  }

  /** Call it when an attempt has ended. */
  noteEnd({ isGood, durationMs }: { isGood: boolean; durationMs: number }): void {
    this.#inFlight -= 1
    if (!isGood) {
      this.#limit = Math.max(1, this.#limit / 2)
      this.#goodResponses = 0
    } else if (durationMs <= QUICK_MS_MAX) {
      this.#goodResponses += 1
      if (this.#goodResponses % RESPONSES_PER_STEP === 0) {
        this.#limit = Math.min(LIMIT_MAX, this.#limit + 1)
      }
    }
    this.#pump()
  }

  /**
   * Removes and returns the deliveries that were not passed to `send` yet. `withdrawnCount` is how many the
   * caller has withdrawn after they were passed to `send`.
   */
  takeReady(withdrawnCount = 0): Work[] {
    this.#inFlight -= withdrawnCount
    return this.#ready.splice(0)
  }

  #pump(): void {
    while (this.#inFlight < this.limit) {
      const work = this.#ready.shift()
      if (work === undefined) return
      this.#inFlight += 1
      this.#send(work)
    }
  }
}
