import type { Logger } from '../logger.ts'
import { isOutage } from '../pg/pg-error.ts'
import type { MonotonicClock } from '../time/clock.ts'
import { withDeadline } from '../time/deadline.ts'
import { Loop } from './loop.ts'

type ReportOptions<Item> = {
  name: string
  /** The time from the first count of a key to its report. */
  delayMs?: number
  /** A key is reported at most once in this time. */
  everyMs?: number
  keysMax?: number
  /** How often it looks for keys to report. */
  pollMs?: number
  monotonic: MonotonicClock
  logger: Logger
  keyOf: (item: Item) => string
  /** Items of one group have at most a hundred keys, so that they leave room for others. */
  groupOf?: (item: Item) => string
  /** Called once for a new key, in the background. If it returns false, the key and its count are dropped. */
  isKnown?: (item: Item) => Promise<boolean>
  /** Gets the latest item of a key, and the count since its last report. Returns false to wait. */
  report: (item: Item, count: number) => Promise<boolean>
}

type Counted<Item> = {
  item: Item
  group: string | null
  count: number
  /** When the key was first counted since its last report. */
  firstAtMs: number
  attemptedAtMs: number
  isKnown: boolean
}

const EVERY_MS = 60_000
const KEYS_MAX = 10_000
const KEYS_PER_GROUP_MAX = 100
const POLL_MS = 1_000
/** The service must be able to stop even if its database is down. */
const STOP_MS_MAX = 1_000

/**
 * Counts in memory what can happen very often. Reports each key within a second of its first count, or
 * `delayMs` after it, and at most once per `everyMs`. A report that fails or has to wait is retried later,
 * with what was counted since then. Disposal reports all counts, and logs how many it can't report in time.
 */
export class CountedReports<Item> implements AsyncDisposable {
  readonly #options: ReportOptions<Item>
  readonly #counts = new Map<string, Counted<Item>>()
  readonly #keysPerGroup = new Map<string, number>()
  readonly #loop: Loop
  #uncounted = 0

  constructor(options: ReportOptions<Item>) {
    this.#options = options
    const { name, pollMs = POLL_MS, logger } = options
    const run = (signal: AbortSignal) => this.#reportAll(signal, { isLast: false })
    this.#loop = new Loop({ name, everyMs: pollMs, logger, run })
  }

  count(item: Item): void {
    const { keyOf, monotonic } = this.#options
    const key = keyOf(item)
    const counted = this.#counts.get(key)
    if (!counted) return this.#add(key, item)
    if (counted.count === 0) counted.firstAtMs = monotonic()
    counted.count += 1
    counted.item = item
  }

  #add(key: string, item: Item): void {
    const { groupOf, keysMax = KEYS_MAX, monotonic, isKnown } = this.#options
    const group = groupOf?.(item) ?? null
    const keysOfGroup = group === null ? 0 : (this.#keysPerGroup.get(group) ?? 0)
    if (this.#counts.size >= keysMax || keysOfGroup >= KEYS_PER_GROUP_MAX) {
      this.#uncounted += 1
      return
    }
    if (group !== null) this.#keysPerGroup.set(group, keysOfGroup + 1)
    this.#counts.set(key, {
      item,
      group,
      count: 1,
      firstAtMs: monotonic(),
      attemptedAtMs: Number.NEGATIVE_INFINITY,
      isKnown: isKnown === undefined,
    })
  }

  #delete(key: string, { group }: Counted<Item>): void {
    this.#counts.delete(key)
    if (group === null) return
    const keysLeft = (this.#keysPerGroup.get(group) ?? 1) - 1
    if (keysLeft > 0) this.#keysPerGroup.set(group, keysLeft)
    else this.#keysPerGroup.delete(group)
  }

  async #reportAll(signal: AbortSignal, { isLast }: { isLast: boolean }): Promise<void> {
    const { name, logger, monotonic, delayMs = 0, everyMs = EVERY_MS } = this.#options
    if (this.#uncounted > 0) {
      logger.warn({ event: 'report.uncounted', report: name, count: this.#uncounted })
      this.#uncounted = 0
    }
    // A copy, so that the round ends although new keys arrive. The last round has little time, so it starts
    // with the keys that are known.
    const entries = [...this.#counts]
    if (isLast) entries.sort(([, a], [, b]) => Number(b.isKnown) - Number(a.isKnown))
    for (const [key, counted] of entries) {
      if (signal.aborted) return
      if (!isLast && monotonic() < counted.attemptedAtMs + everyMs) continue
      try {
        if (!(await this.#shouldKeep(counted))) this.#delete(key, counted)
        else if (isLast || monotonic() >= counted.firstAtMs + delayMs) await this.#report(counted)
      } catch (error) {
        if (isOutage(error)) throw error
        // The other keys must not wait for one that fails.
        logger.warn({ event: 'report.failed', report: name, err: error })
        counted.attemptedAtMs = monotonic()
      }
    }
  }

  async #shouldKeep(counted: Counted<Item>): Promise<boolean> {
    if (counted.count === 0) return false
    const { isKnown } = this.#options
    counted.isKnown ||= !isKnown || (await isKnown(counted.item))
    return counted.isKnown
  }

  async #report(counted: Counted<Item>): Promise<void> {
    const { monotonic, report } = this.#options
    const { item, count } = counted
    const isReported = await report(item, count)
    counted.attemptedAtMs = monotonic()
    if (!isReported) return
    // What was counted during this report goes into the next one.
    counted.count -= count
    counted.firstAtMs = counted.attemptedAtMs
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { name, logger } = this.#options
    const stop = new AbortController()
    const work = async () => {
      await this.#loop[Symbol.asyncDispose]()
      await this.#reportAll(stop.signal, { isLast: true })
    }
    const late = () => new Error('writing the reports took too long')
    const failure = await withDeadline(work(), { timeoutMs: STOP_MS_MAX, late }).catch(
      (error: unknown) => error,
    )
    stop.abort()
    const known = this.#counts.values().filter(({ isKnown }) => isKnown)
    const lost = known.reduce((sum, { count }) => sum + count, 0)
    if (lost > 0) logger.warn({ event: 'report.lost', report: name, count: lost, err: failure })
  }
}
