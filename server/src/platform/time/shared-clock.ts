import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { type Clock, monotonicClock, systemClock } from './clock.ts'
import type { Logger } from '../logger.ts'
import { Loop } from '../scheduling/loop.ts'
import { isOutage, type Queryable } from '../pg/database.ts'

const MEASURE_EVERY_MS = 10_000
/** Smaller differences are ignored: they do no harm, and a measurement isn't exact. */
const TOLERANCE_MS = 1_000
const WARNING_MS = 5_000
/** After the system clock was changed, until a measurement succeeds. */
const ASK_AGAIN_MS = 1_000

/**
 * The node's clock, corrected by its difference from the database's clock. Nodes use it for leases and due
 * times that they share: with its own clock, a node that is ahead would take over work that another node is
 * still doing. The difference is measured from the system clock, so a clock that a test sets stays unchanged.
 * If the system clock is changed in between, the monotonic clock shows by how much, and the difference is measured
 * again at once.
 */
export class SharedClock implements AsyncDisposable {
  readonly now: Clock
  readonly #db: Queryable
  readonly #logger: Logger
  readonly #loop: Loop
  #offsetMs = 0
  /** What the system clock showed when the monotonic clock was 0, as of the last measurement. */
  #startedAtMs = startedAtMs()
  /** When a change of the system clock was last noticed, as monotonic time. */
  #askedAtMs = -Infinity

  constructor({ db, clock, logger }: { db: Queryable; clock: Clock; logger: Logger }) {
    this.#db = db
    this.#logger = logger
    this.now = () => clock() + this.#offsetMs - this.#stepMs()
    const run = () => this.#measure()
    this.#loop = new Loop({ name: 'clock', everyMs: MEASURE_EVERY_MS, logger, run })
  }

  measureNow(): Promise<void> {
    return this.#loop.runNow()
  }

  /** By how much the system clock was changed since the last measurement. */
  #stepMs(): number {
    const stepMs = startedAtMs() - this.#startedAtMs
    if (Math.abs(stepMs) <= TOLERANCE_MS) return 0
    const nowMs = monotonicClock()
    if (nowMs - this.#askedAtMs >= ASK_AGAIN_MS) {
      this.#askedAtMs = nowMs
      void this.measureNow()
    }
    return stepMs
  }

  async #measure(): Promise<void> {
    const startedMs = startedAtMs()
    const offsetMs = await this.#readOffsetMs()
    if (offsetMs === null) return
    this.#startedAtMs = startedMs
    this.#offsetMs = Math.abs(offsetMs) <= TOLERANCE_MS ? 0 : offsetMs
    if (Math.abs(offsetMs) > WARNING_MS) this.#logger.warn({ event: 'clock.skew', offsetMs })
  }

  /** Null if the database is unavailable. */
  async #readOffsetMs(): Promise<number | null> {
    try {
      const { offsetMs, durationMs } = await readClockOffset(this.#db)
      // A slow response says too little about when the database read its clock.
      return durationMs > TOLERANCE_MS ? null : offsetMs
    } catch (error) {
      if (isOutage(error)) return null
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
  }
}

function startedAtMs(): number {
  return systemClock() - monotonicClock()
}

/** How far the database's clock is ahead of the system clock, give or take half of `durationMs`. */
export async function readClockOffset(
  db: Queryable,
): Promise<{ offsetMs: number; durationMs: number }> {
  const sentAtMs = systemClock()
  const startedAtMs = performance.now()
  const { rows } = await sql<{ nowMs: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as "nowMs"`.execute(db)
  const durationMs = performance.now() - startedAtMs
  const [row] = rows
  assert(row, 'a select without from has one row')
  return { offsetMs: Math.round(row.nowMs - (sentAtMs + durationMs / 2)), durationMs }
}
