import { ApiError } from '../../errors.ts'
import type { Logger } from '../../platform/logger.ts'

/** With a query of at most 0.9 s, a stream ends within two seconds after access is revoked. */
const RECHECK_MS = 750
/** Delay before a stream's first check: the cache that admitted it can be almost 2 s old. */
const FIRST_CHECK_MS = 100
/** A stream ends if its access can't be confirmed for this long. */
const UNCONFIRMED_MS_MAX = 30_000

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
  readonly #watched = new Set<Watched<Grant>>()
  #timer: NodeJS.Timeout | null = null
  #isReading = false
  #readAtMs = Number.NEGATIVE_INFINITY

  /** `read` returns what each id can currently access. An id that it omits has lost access. */
  constructor(
    read: (ids: readonly string[]) => Promise<ReadonlyMap<string, Grant>>,
    logger: Logger,
  ) {
    this.#read = read
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
    this.#schedule(FIRST_CHECK_MS)
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
      const grants = await this.#read([...new Set(all.map(({ id }) => id))])
      for (const watched of all) this.#judge(watched, grants.get(watched.id) ?? null)
    } catch (error) {
      // If the database doesn't respond, the next run tries again.
      this.#logger.warn({ event: 'access.unchecked', streams: all.length, err: error })
      const sinceMs = this.#readAtMs - UNCONFIRMED_MS_MAX
      for (const watched of all) {
        if (watched.confirmedAtMs < sinceMs) this.#end(watched, new ApiError('unavailable'))
      }
    }
    this.#isReading = false
    const isSomeNew = this.#watched.values().some(({ isNew }) => isNew)
    this.#schedule(isSomeNew ? FIRST_CHECK_MS : RECHECK_MS)
  }

  #judge(watched: Watched<Grant>, grant: Grant | null): void {
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
