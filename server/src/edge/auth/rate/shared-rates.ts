import type { Logger } from '../../../platform/logger.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { Loop } from '../../../platform/scheduling/loop.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import { type BucketUse, type TokenBuckets } from '../token-bucket.ts'
import { exchangeUse, type SharedBucket } from './shared-rate-store.ts'

const EXCHANGE_MS = 1_000
/** A node uses a bucket alone again after not using it for this long, or without the database. */
const ACTIVE_MS = 5_000
const FORGET_MS = 60_000
/** How fast old demand fades: to a third in this time. */
const FADE_MS = 4_000
const REPORTED_MAX = 1_000
const ACTIVE_MAX = 2_000
/** A node gets at least this part of its equal share, so that a caller who returns isn't refused. */
const SHARE_MIN = 0.1

type SharedRatesOptions = {
  db: Queryable
  /** Each name is in only one of them. */
  buckets: readonly TokenBuckets[]
  /** How many nodes serve requests, including this one. */
  countNodes: () => number
  /** The database's time. */
  clock: Clock
  logger: Logger
}

/** What this node has reported about a bucket. */
type Reported = { buckets: TokenBuckets; wanted: number; atMs: number }

/**
 * Keeps the rate limits of keys and companies when their calls reach several nodes. No request waits for this:
 * once per second, each node reports the tokens that callers used and gets its share of the bucket, in
 * proportion to the demand of its callers.
 *
 * Only buckets that may exceed their limit are shared. If all nodes together use more than the rate, then one
 * of them uses more than its equal part, so a node starts to share a bucket at half of that. The others
 * then report it too. A single node reports nothing.
 */
export class SharedRates implements AsyncDisposable {
  readonly #options: SharedRatesOptions
  readonly #loop: Loop
  readonly #reported = new Map<string, Reported>()
  #activeNames: ReadonlySet<string> = new Set()
  #collectedAtMs: number
  #exchangedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: SharedRatesOptions) {
    this.#options = options
    this.#collectedAtMs = options.clock()
    const run = () => this.#exchange()
    this.#loop = new Loop({ name: 'rates', everyMs: EXCHANGE_MS, logger: options.logger, run })
  }

  exchangeNow(): Promise<void> {
    return this.#loop.runNow()
  }

  async #exchange(): Promise<void> {
    const { db, clock, countNodes } = this.#options
    const nowMs = clock()
    // The interval is too short to measure use. If the clock was set back, it starts over.
    if (Math.abs(nowMs - this.#collectedAtMs) < EXCHANGE_MS / 2) return
    const nodes = countNodes()
    this.#forgetIdle(nodes === 1 ? Infinity : nowMs - ACTIVE_MS)
    const { uses, bucketsOf } = this.#collect(nowMs, nodes)
    if (nodes === 1 || bucketsOf.size === 0) return
    const limits = { activeMs: ACTIVE_MS, forgetMs: FORGET_MS, fadeMs: FADE_MS, limit: ACTIVE_MAX }
    const { own, activeNames } = await exchangeUse(db, uses, { nowMs, ...limits })
    this.#exchangedAtMs = nowMs
    this.#activeNames = new Set(activeNames)
    const useOf = new Map(uses.map((use) => [use.name, use]))
    for (const shared of own) {
      const buckets = bucketsOf.get(shared.name)
      const use = useOf.get(shared.name)
      if (buckets && use) this.#apply(shared, { buckets, use, nowMs, nodes })
    }
  }

  /** What callers used since the last call, and which buckets they used. */
  #collect(nowMs: number, nodes: number) {
    const seconds = Math.abs(nowMs - this.#collectedAtMs) / 1_000
    this.#collectedAtMs = nowMs
    const bucketsOf = new Map<string, TokenBuckets>()
    const uses: BucketUse[] = []
    for (const buckets of this.#options.buckets) {
      for (const use of buckets.collectUse()) {
        bucketsOf.set(use.name, buckets)
        const isShared = this.#reported.has(use.name) || this.#activeNames.has(use.name)
        if (isShared || use.wanted / seconds > use.perSecond / (2 * nodes)) uses.push(use)
      }
    }
    uses.sort((a, b) => b.wanted / b.perSecond - a.wanted / a.perSecond)
    return { uses: uses.slice(0, REPORTED_MAX), bucketsOf }
  }

  #apply(
    { name, tokens, wanted }: SharedBucket,
    {
      buckets,
      use,
      nowMs,
      nodes,
    }: { buckets: TokenBuckets; use: BucketUse; nowMs: number; nodes: number },
  ): void {
    const last = this.#reported.get(name)
    const fading = last ? last.wanted * Math.exp(-(nowMs - last.atMs) / FADE_MS) : 0
    const ownWanted = fading + use.wanted
    this.#reported.set(name, { buckets, wanted: ownWanted, atMs: nowMs })
    // While at least half of the shared bucket is left, each node may use all of it.
    const isScarce = tokens < use.capacity / 2
    const share = isScarce ? Math.min(1, Math.max(SHARE_MIN / nodes, ownWanted / wanted)) : 1
    buckets.share(name, { share, tokens: tokens * share })
  }

  /** Buckets that this node hasn't reported since then are its own again. */
  #forgetIdle(beforeMs: number): void {
    for (const [name, { buckets, atMs }] of this.#reported) {
      if (atMs >= beforeMs) continue
      this.#reported.delete(name)
      buckets.share(name, null)
    }
    if (this.#exchangedAtMs < beforeMs) this.#activeNames = new Set()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
  }
}
