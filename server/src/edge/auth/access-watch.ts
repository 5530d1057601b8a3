import { ApiError } from '../../errors.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import type { Logger } from '../../platform/logger.ts'

type Limits = {
  /** Time between reads. */
  recheckMs: number
  /** Before a new stream's first check: the cache that admitted it may be almost two seconds old. */
  firstCheckMs: number
  /** Timeout of a read, including the wait for a connection. */
  readMsMax: number
  /** A stream whose access can't be confirmed for this long ends. */
  unconfirmedMsMax: number
}

/**
 * While the database answers, a stream ends within two seconds after its access was revoked; otherwise
 * within twelve.
 */
const LIMITS: Limits = {
  recheckMs: 750,
  firstCheckMs: 100,
  readMsMax: 900,
  unconfirmedMsMax: 10_000,
}

type Watched<Grant> = {
  id: string
  check: (grant: Grant | null) => void
  onLost: (reason: unknown) => void
  isNew: boolean
  confirmedAtMs: number
}

/**
 * Periodically rechecks the access of every open stream on the node. Downloads and live tails run for
 * hours, and access can be revoked after they start. All streams share one query, so the database gets
 * at most ten queries per second while streams open, and fewer than two per second after that, however
 * many streams there are. Without streams there are no queries.
 */
export class AccessWatch<Grant> {
  readonly #read: (ids: readonly string[]) => Promise<ReadonlyMap<string, Grant>>
  readonly #logger: Logger
  readonly #limits: Limits
  readonly #watched = new Set<Watched<Grant>>()
  #timer: NodeJS.Timeout | null = null
  #isReading = false
  #readAtMs = Number.NEGATIVE_INFINITY

  /** `read` returns what each id can currently access. An id that it omits has lost access. */
  constructor(
    read: (ids: readonly string[]) => Promise<ReadonlyMap<string, Grant>>,
    logger: Logger,
    limits: Limits = LIMITS,
  ) {
    this.#read = read
    this.#limits = limits
    this.#logger = logger
  }

  /** `check` throws if the stream must end. `onLost` is then called once, with that error. */
  watch(
    id: string,
    check: (grant: Grant | null) => void,
    onLost: (reason: unknown) => void,
  ): Disposable {
    const watched = { id, check, onLost, isNew: true, confirmedAtMs: performance.now() }
    this.#watched.add(watched)
    this.#schedule(this.#limits.firstCheckMs)
    return { [Symbol.dispose]: () => void this.#watched.delete(watched) }
  }

  #schedule(everyMs: number): void {
    if (this.#isReading || this.#watched.size === 0) return
    if (this.#timer) clearTimeout(this.#timer)
    const waitMs = Math.max(0, this.#readAtMs + everyMs - performance.now())
    this.#timer = setTimeout(() => void this.#recheck(), waitMs)
    this.#timer.unref()
  }

  async #recheck(): Promise<void> {
    this.#isReading = true
    this.#readAtMs = performance.now()
    const all = [...this.#watched]
    for (const watched of all) watched.isNew = false
    try {
      const reading = this.#read([...new Set(all.map(({ id }) => id))])
      const late = () => new Error('the database did not respond in time')
      const grants = await withDeadline(reading, { timeoutMs: this.#limits.readMsMax, late })
      for (const watched of all) this.#check(watched, grants.get(watched.id) ?? null)
    } catch (error) {
      this.#onUnchecked(error)
    }
    this.#isReading = false
    const isSomeNew = this.#watched.values().some(({ isNew }) => isNew)
    this.#schedule(isSomeNew ? this.#limits.firstCheckMs : this.#limits.recheckMs)
  }

  /** If the database doesn't respond, the next run tries again. */
  #onUnchecked(error: unknown): void {
    // Streams end before the database closes, which fails the query that is running then.
    if (this.#watched.size === 0) return
    this.#logger.warn({ event: 'access.unchecked', streams: this.#watched.size, err: error })
    const sinceMs = performance.now() - this.#limits.unconfirmedMsMax
    for (const watched of this.#watched) {
      if (watched.confirmedAtMs < sinceMs) this.#end(watched, new ApiError('unavailable'))
    }
  }

  #check(watched: Watched<Grant>, grant: Grant | null): void {
    try {
      watched.check(grant)
      watched.confirmedAtMs = this.#readAtMs
    } catch (reason) {
      this.#end(watched, reason)
    }
  }

  #end(watched: Watched<Grant>, reason: unknown): void {
    // Skip streams that ended during the query.
    if (this.#watched.delete(watched)) watched.onLost(reason)
  }
}
