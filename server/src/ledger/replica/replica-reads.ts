import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../../errors.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { type Database, SQLSTATE, sqlStateOf } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import { type ChainPosition, compare } from './chain-position.ts'
import { findChainPosition, hasEvent } from './chain-position-store.ts'
import type { ChainReads, ChainSource } from './chain-reads.ts'
import { NotServedError, ReplicaSession } from './replica-session.ts'

/** Where a read ran: on the replica, or on the primary for one of these reasons. */
const OUTCOMES = [
  'replica',
  'ahead',
  'behind',
  'busy',
  'conflict',
  'failed',
  'large',
  'paused',
  'slow',
] as const
type Outcome = (typeof OUTCOMES)[number]
type Fallback = Exclude<Outcome, 'replica'>

/** Waits for a replica that is a few commits behind. Together, less than many queries take. */
const CATCH_UP_MS = [2, 5, 10, 20, 40]
/** Waits for the primary to show a commit that a synchronous standby shows a moment earlier. */
const CONFIRM_MS = [2, 5, 10]
const CHECK_EVERY_MS = 1_000
/** How long a pause lasts at least. It doubles if the replica was used for less than this maximum before. */
const PAUSE_MS_MIN = 1_000
const PAUSE_MS_MAX = 30_000

type ReplicaOptions = {
  primary: ChainSource
  replica: Database
  logger: Logger
  monotonic: MonotonicClock
}

/** What the replica must have before it is used again. Null if it only has to respond. */
type Missing = { workspaceId: WorkspaceId; position: ChainPosition } | null

/**
 * Reads chains on a replica that provably has them, and otherwise on the primary. Each read compares the end of
 * the chain in a snapshot of the replica with the one that the primary has when the read starts, and then reads
 * in the same snapshot. So it sees every event that any node acknowledged before, and no event that the primary
 * doesn't have.
 *
 *   used ──a read fails, or finds the replica behind──▶ paused: reads go to the primary immediately
 *   paused ──after a pause, the replica responds and has what was missing──▶ used
 *
 * While the replica is used, a check every second finds out whether it responds, so that a replica that is
 * frozen delays only the reads of that second.
 */
export class ReplicaReads implements ChainReads, AsyncDisposable {
  /** How many reads ran where. */
  readonly counts = new Map<Outcome, number>(OUTCOMES.map((outcome) => [outcome, 0]))
  readonly #options: ReplicaOptions
  readonly #checking: Loop
  #paused: { untilMs: number; missing: Missing } | null = { untilMs: 0, missing: null }
  #pauseMs = PAUSE_MS_MIN
  /** When the replica was last used again. Null until it is used. */
  #usedAtMs: number | null = null
  #hasFailed = false

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.#checking = new Loop({
      name: 'replica-check',
      everyMs: CHECK_EVERY_MS,
      logger: options.logger,
      run: () => this.#check(),
    })
    void this.#checking.runNow()
  }

  /** True while all reads use the primary. */
  get isDown(): boolean {
    return this.#paused !== null
  }

  async read<T>(workspaceId: WorkspaceId, read: (source: ChainSource) => Promise<T>): Promise<T> {
    const { primary } = this.#options
    if (this.#paused !== null) return await this.#fallBack('paused', read)
    const position = await findChainPosition(primary.db, workspaceId)
    // An empty chain costs the primary no more than this comparison.
    if (position === null) return await read(primary)
    let fallback: Fallback
    try {
      const found = await this.#readReplica(workspaceId, position, read)
      if ('result' in found) {
        this.#count('replica')
        return found.result
      }
      fallback = found.refused
      if (fallback === 'behind') this.#pause({ reason: fallback }, { workspaceId, position })
    } catch (error) {
      fallback = fallbackOf(error)
      // An error for the caller doesn't depend on the server, unless a statement took too long.
      if (error instanceof ApiError && fallback !== 'slow') throw error
      if (fallback === 'failed') this.#pause({ reason: fallback, err: error }, null)
    }
    return await this.#fallBack(fallback, read)
  }

  async #fallBack<T>(reason: Fallback, read: (source: ChainSource) => Promise<T>): Promise<T> {
    this.#count(reason)
    return await read(this.#options.primary)
  }

  async #readReplica<T>(
    workspaceId: WorkspaceId,
    position: ChainPosition,
    read: (source: ChainSource) => Promise<T>,
  ): Promise<{ result: T } | { refused: 'ahead' | 'behind' }> {
    using session = await ReplicaSession.open(this.#options.replica)
    for (const waitMs of [...CATCH_UP_MS, null]) {
      const found = await session.inSnapshot(async (db) => {
        const reached = await findChainPosition(db, workspaceId)
        return await this.#refusalOf(workspaceId, position, reached)
      }, read)
      if ('result' in found || found.refused === 'ahead') return found
      if (waitMs !== null) await delay(waitMs)
    }
    return { refused: 'behind' }
  }

  /** Null if the snapshot has the chain. */
  async #refusalOf(
    workspaceId: WorkspaceId,
    position: ChainPosition,
    reached: ChainPosition | null,
  ): Promise<'ahead' | 'behind' | null> {
    if (reached !== null && !reached.isStandby) throw new Error('the replica is not a standby')
    const comparison = compare(position, reached)
    switch (comparison) {
      case 'same':
        return null
      case 'behind':
        return 'behind'
      case 'archived':
        return 'ahead'
      case 'ahead':
        return reached !== null && (await this.#isConfirmed(workspaceId, reached)) ? null : 'ahead'
      case 'other':
        throw new Error('the replica has another history than the primary')
      default:
        return comparison satisfies never
    }
  }

  async #isConfirmed(workspaceId: WorkspaceId, reached: ChainPosition): Promise<boolean> {
    for (const waitMs of [...CONFIRM_MS, null]) {
      if (await hasEvent(this.#options.primary.db, workspaceId, reached)) return true
      if (waitMs !== null) await delay(waitMs)
    }
    return false
  }

  #count(outcome: Outcome): void {
    this.counts.set(outcome, (this.counts.get(outcome) ?? 0) + 1)
  }

  #pause(cause: { reason: Fallback; err?: unknown }, missing: Missing): void {
    if (this.#paused !== null) return
    const { logger, monotonic } = this.#options
    const nowMs = monotonic()
    const wasShort = this.#usedAtMs !== null && nowMs - this.#usedAtMs < PAUSE_MS_MAX
    this.#pauseMs = wasShort ? Math.min(2 * this.#pauseMs, PAUSE_MS_MAX) : PAUSE_MS_MIN
    this.#paused = { untilMs: nowMs + this.#pauseMs, missing }
    logger.warn({ event: 'replica.down', pauseMs: this.#pauseMs, ...cause })
  }

  async #check(): Promise<void> {
    const { logger, monotonic } = this.#options
    if (this.#paused !== null && monotonic() < this.#paused.untilMs) return
    try {
      if (!(await this.#hasCaughtUp(this.#paused?.missing ?? null))) return
    } catch (error) {
      if (!(error instanceof NotServedError)) this.#noteDown(error)
      return
    }
    if (this.#paused === null) return
    this.#paused = null
    this.#usedAtMs = monotonic()
    logger.info({ event: 'replica.up' })
  }

  #noteDown(err: unknown): void {
    const isFirst = this.#usedAtMs === null && !this.#hasFailed
    this.#hasFailed = true
    if (this.#paused === null) this.#pause({ reason: 'failed', err }, null)
    else if (isFirst) this.#options.logger.warn({ event: 'replica.down', reason: 'failed', err })
  }

  /** Rejects if the replica doesn't respond. */
  async #hasCaughtUp(missing: Missing): Promise<boolean> {
    using session = await ReplicaSession.open(this.#options.replica)
    const found = await session.inSnapshot(
      async (db) => {
        if (missing === null) return null
        const reached = await findChainPosition(db, missing.workspaceId)
        return compare(missing.position, reached) === 'behind' ? 'behind' : null
      },
      async () => null,
    )
    return 'result' in found
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#checking[Symbol.asyncDispose]()
  }
}

function fallbackOf(error: unknown): Fallback {
  if (error instanceof NotServedError) return error.reason
  const sqlState = sqlStateOf(error instanceof ApiError ? error.cause : error)
  if (sqlState === SQLSTATE.QUERY_CANCELED) return 'slow'
  // The standby canceled the statement, because it would have delayed what the primary has changed meanwhile.
  return sqlState === SQLSTATE.SERIALIZATION_FAILURE ? 'conflict' : 'failed'
}
