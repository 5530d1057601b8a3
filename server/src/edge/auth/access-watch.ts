import { ApiError } from '../../errors.ts'
import type { Logger } from '../../platform/logger.ts'

/** With a read of at most 0.9 s, a stream ends within two seconds after its access was revoked. */
const RECHECK_MS = 750
/** Before a new stream's first check: the cache that admitted it may be almost two seconds old. */
const FIRST_CHECK_MS = 100
/** A stream whose access can't be confirmed for this long ends. */
const UNCONFIRMED_MS_MAX = 30_000

type Watched<Grant> = {
  id: string
  check: (grant: Grant | null) => void
  onLost: (reason: unknown) => void
  isNew: boolean
  confirmedAtMs: number
}

/**
 * Rechecks the access of every open stream on the node, again and again: downloads and live tails live
 * for hours, and the check at their start says nothing about later. All streams share one read, so the
 * database is asked at most ten times per second while streams open, and less than twice per second
 * after that, however many there are. Without streams it asks nothing.
 */
export class AccessWatch<Grant> {
  readonly #read: (ids: readonly string[]) => Promise<ReadonlyMap<string, Grant>>
  readonly #logger: Logger
  readonly #watched = new Set<Watched<Grant>>()
  #timer: NodeJS.Timeout | null = null
  #isReading = false
  #readAtMs = Number.NEGATIVE_INFINITY

  /** `read` returns what each id may do now; an id that it leaves out has lost its access. */
  constructor(
    read: (ids: readonly string[]) => Promise<ReadonlyMap<string, Grant>>,
    logger: Logger,
  ) {
    this.#read = read
    this.#logger = logger
  }

  /** `check` throws when the stream must end; `onLost` then gets what it threw, once. */
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
      // A database that doesn't answer now is asked again.
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
    // Unless the stream ended while we asked.
    if (this.#watched.delete(watched)) watched.onLost(reason)
  }
}
