import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import { type GaugeGroup, gaugeGroups } from './gauge-groups.ts'

const EVERY_MS = 30_000
/** A slow read is repeated later, so that reading never takes more than a twentieth of the time. */
const PAUSES_PER_READ = 20
/** A scrape waits this long for a read. If that is not enough, it gets the values of the read before. */
const SCRAPE_WAIT_MS = 1_000

type ReaderOptions = {
  db: Queryable
  metrics: Metrics
  monotonic: MonotonicClock
  logger: Logger
  /** False without an archive: then nothing is signed, so nothing waits to be signed. */
  isSigning: boolean
}

/**
 * Reads gauges from the database when the metrics are scraped, at most every 30 s however many scrapers there are.
 * The groups are read one after another, so that they take one connection. If a group can't be read, its gauges are
 * left out until it can: an old backlog must not look like a current one.
 */
export class GaugeReader {
  readonly #options: ReaderOptions
  readonly #groups: readonly GaugeGroup[]
  #running: Promise<void> | null = null
  #dueAtMs = Number.NEGATIVE_INFINITY

  constructor(options: ReaderOptions) {
    this.#options = options
    const { metrics } = options
    this.#groups = gaugeGroups(metrics, options)
    for (const { name } of this.#groups) metrics.gaugesFailed.inc({ group: name }, 0)
  }

  /** Call it before a scrape. Never rejects. */
  async refresh(): Promise<void> {
    if (this.#options.monotonic() >= this.#dueAtMs) this.#running ??= this.#readAll()
    if (!this.#running) return
    const scrape = new AbortController()
    const wait = delay(SCRAPE_WAIT_MS, undefined, { signal: scrape.signal, ref: false })
    await Promise.race([this.#running, wait])
    wait.catch(() => {})
    scrape.abort()
  }

  async #readAll(): Promise<void> {
    const { monotonic } = this.#options
    const startedAtMs = monotonic()
    for (const group of this.#groups) await this.#read(group)
    const tookMs = monotonic() - startedAtMs
    this.#dueAtMs = startedAtMs + Math.max(EVERY_MS, tookMs * PAUSES_PER_READ)
    this.#running = null
  }

  async #read({ name, read, clear }: GaugeGroup): Promise<void> {
    const { db, metrics, logger } = this.#options
    try {
      await read(db)
    } catch (error) {
      clear()
      metrics.gaugesFailed.inc({ group: name })
      logger.warn({ event: 'gauges.failed', group: name, err: error })
    }
  }
}
