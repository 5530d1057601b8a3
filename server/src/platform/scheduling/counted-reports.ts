import type { Logger } from '../logger.ts'
import { isOutage } from '../pg/pg-error.ts'
import type { MonotonicClock } from '../time/clock.ts'
import { Loop } from './loop.ts'

type ReportOptions<Note> = {
  name: string
  /** A key is reported at most once in this time. */
  everyMs: number
  keysMax: number
  /** How often it looks for keys to report. */
  pollMs?: number
  monotonic: MonotonicClock
  logger: Logger
  keyOf: (note: Note) => string
  /** Gets the latest note of a key, and the number of notes since its last report. Returns false to wait. */
  report: (note: Note, count: number) => Promise<boolean>
}

type Counted<Note> = { note: Note; count: number; reportedAtMs: number }

const POLL_MS = 1_000

/**
 * Counts in memory what can happen very often, and reports each key within a second of its first note, then
 * at most once per `everyMs`. A report that fails or has to wait is repeated with the notes since then.
 */
export class CountedReports<Note> implements AsyncDisposable {
  readonly #options: ReportOptions<Note>
  readonly #counts = new Map<string, Counted<Note>>()
  readonly #loop: Loop
  #uncounted = 0

  constructor(options: ReportOptions<Note>) {
    this.#options = options
    const { name, everyMs, pollMs = POLL_MS, logger, monotonic } = options
    const run = (signal: AbortSignal) => this.#reportAll(monotonic() - everyMs, signal)
    this.#loop = new Loop({ name, everyMs: pollMs, logger, run })
  }

  note(note: Note): void {
    const { keyOf, keysMax } = this.#options
    const key = keyOf(note)
    const known = this.#counts.get(key)
    if (!known && this.#counts.size >= keysMax) {
      this.#uncounted += 1
      return
    }
    const { count, reportedAtMs } = known ?? { count: 0, reportedAtMs: Number.NEGATIVE_INFINITY }
    this.#counts.set(key, { note, count: count + 1, reportedAtMs })
  }

  async #reportAll(reportedBeforeMs: number, signal?: AbortSignal): Promise<void> {
    const { name, logger } = this.#options
    for (const [key, { reportedAtMs, count }] of this.#counts) {
      if (signal?.aborted) return
      if (reportedAtMs > reportedBeforeMs) continue
      if (count === 0) this.#counts.delete(key)
      else await this.#reportOne(key)
    }
    if (this.#uncounted > 0) {
      logger.warn({ event: 'report.uncounted', report: name, count: this.#uncounted })
      this.#uncounted = 0
    }
  }

  async #reportOne(key: string): Promise<void> {
    const { name, logger, monotonic, report } = this.#options
    const known = this.#counts.get(key)
    if (!known) return
    let isReported = false
    try {
      isReported = await report(known.note, known.count)
    } catch (error) {
      if (isOutage(error)) throw error
      // The other keys must not wait for one that fails.
      logger.warn({ event: 'report.failed', report: name, err: error })
    }
    // Notes during the report count for the next one.
    const now = this.#counts.get(key) ?? known
    const count = isReported ? now.count - known.count : now.count
    this.#counts.set(key, { ...now, count, reportedAtMs: monotonic() })
  }

  /** Reports what is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { name, logger } = this.#options
    await this.#loop[Symbol.asyncDispose]()
    // The service must be able to stop even if its database is down.
    const failure = await this.#reportAll(Number.POSITIVE_INFINITY).catch((error: unknown) => error)
    const lost = this.#counts.values().reduce((sum, { count }) => sum + count, 0)
    if (lost > 0) logger.warn({ event: 'report.lost', report: name, count: lost, err: failure })
  }
}
