import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../errors.ts'
import type { HeadMove } from '../ledger/append-store.ts'
import { createSaltSource } from '../ledger/commitment.ts'
import { probeWrite, WRITE_PROBE_SETTINGS } from '../ledger/write-probe-store.ts'
import type { Clock } from '../platform/time/clock.ts'
import { startDeadline } from '../platform/time/deadline.ts'
import { type CompanyId, randomFraction, type WorkspaceId } from '../platform/id.ts'
import type { Logger } from '../platform/logger.ts'
import { Loop } from '../platform/scheduling/loop.ts'
import { isContended } from '../platform/scheduling/time-slice.ts'
import type { Metrics } from '../platform/metrics.ts'
import { type Connection, isRejection, SQLSTATE, sqlStateOf } from '../platform/pg/database.ts'
import { BindWriter } from '../platform/pg/bind-message.ts'
import type { DiskSpace } from '../platform/engine/disk-space.ts'
import { PgSession } from '../platform/pg/pg-session.ts'
import { type Plan, PLAN_TERMS } from '../tenancy/plans.ts'
import { type Batch, createBatch } from './batch.ts'
import { Batcher } from './batcher.ts'
import { commitBatch, type CommitDeps, sealAhead } from './commit-batch.ts'
import { HeadCache } from './head-cache.ts'
import { startCommitSpan } from './ingest-trace.ts'
import type { DailyBytes } from './daily-bytes.ts'
import { bytesOf, type Outcome, type PendingItem } from './pending-item.ts'

/** For what follows the chains. */
export type WriterListeners = {
  /** Called with the workspaces of each committed batch. */
  onCommit: (workspaceIds: ReadonlySet<WorkspaceId>) => void
  /** Called for each head that the writer has moved, before its events are acknowledged. */
  onMoved: (move: HeadMove) => void
}

type WriterOptions = {
  connection: Connection
  clock: Clock
  logger: Logger
  metrics: Metrics
  /** Multiplies the timeouts. */
  timeoutFactor?: number
  /** Null without rate limits. */
  dailyBytes?: DailyBytes | null
  /** Null if the database is not on a disk of this machine. */
  diskSpace?: Pick<DiskSpace, 'isLow'> | null
  listeners?: WriterListeners | null
}

const LIMITS = {
  itemsPerBatchMax: 256,
  waitingMin: 2_048,
  waitingMax: 16_384,
  waitMsMax: 500,
} as const
/** One company's bytes per batch while no other is active. Small, because the next event may be another's. */
const ALONE_BYTES_MAX = 512 * 1_024
/** While others are active. Written in about 10 ms: others wait for such a batch, then for their own. */
const SHARED_BYTES_MAX = 192 * 1_024
const WEIGHTS = {
  bytesOf,
  bytesPerBatchMax: 4 * 1_024 * 1_024,
  ownerOf: ({ event }: PendingItem) => event.companyId,
  bytesPerOwnerMax: (owner: string) => (isContended(owner) ? SHARED_BYTES_MAX : ALONE_BYTES_MAX),
  waitingBytesMax: 64 * 1_024 * 1_024,
} as const
/**
 * Waiting this long doubled the batch size, and with it the throughput, of four nodes on the same workspaces.
 */
const CROWDED_LINGER_MS = 4
/** The time limit for a batch, even if the database is alive. After it, the outcome is unknown. */
const COMMIT_MS_MAX = 10_000
/** How old the last confirmation that the database accepts writes can be. */
const CONFIRMATION_AGE_MS_MAX = 2_000
/** How often the writer probes while it is down. */
const PROBE_EVERY_MS = 200
/**
 * The delay before the next probe after the second rejected batch in a row. It doubles with each further
 * one, up to the maximum.
 */
const RECOVERY_DELAY_MS_MIN = 500
const RECOVERY_DELAY_MS_MAX = 5_000
/** Counted from 0, so that a rate exists before the first one. */
const COUNTED_OUTCOMES = ['stored', 'replayed', 'refused', 'crowded', 'failed'] as const
/** A probe that takes longer counts as failed until it completes. It may be waiting for a standby. */
const PROBE_MS_MAX = 4_000

/**
 * Settings of the writer's connection. The best plan for its few statements is always the same, but without
 * statistics PostgreSQL might choose another, such as a sequential scan of all keys for every batch.
 */
export const WRITER_SETTINGS = [
  'role=annals_serving',
  'enable_seqscan=off',
  'plan_cache_mode=force_generic_plan',
  // A node that is cut off from the network can't release its locks, so the server releases them.
  'idle_in_transaction_session_timeout=2s',
  // Longer than the timeout above. A workspace whose head stays locked must not block the others.
  'lock_timeout=4s',
]

/**
 * The only writer of events in this process, with its queue, connection and head cache.
 *
 *   up ──a batch or a probe fails──▶ down: every event is rejected immediately, nothing is queued
 *   down ──a probe succeeds──▶ up, with an empty head cache and a new connection
 *
 * The probe (`startProbing`) has its own connection, so that no batch waits for it. It runs when the last
 * confirmation that the database accepts writes is 2 s old; a stored batch counts as a confirmation.
 * A probe succeeds only if the writer also has a connection or can open one.
 *
 * When the server rejects several batches in a row although probes succeed, the probe can't detect the
 * cause. The writer then stays down longer after each rejection, until a batch is stored or a probe fails.
 * A broken connection doesn't count as a rejection: the next connection may work.
 */
export class Writer implements AsyncDisposable {
  readonly #batcher: Batcher<PendingItem, Outcome>
  readonly #session: PgSession
  readonly #heads: HeadCache
  readonly #logger: Logger
  readonly #metrics: Metrics
  readonly #listeners: WriterListeners | null
  readonly #dailyBytes: DailyBytes | null
  readonly #diskSpace: Pick<DiskSpace, 'isLow'> | null
  readonly #deps: CommitDeps
  /** Those that no batch uses. At most two, because one batch is in flight and one is sealed ahead. */
  readonly #bindWriters: BindWriter[] = []
  #inFlight: Batch | null = null
  readonly #probeSession: PgSession
  readonly #probeMsMax: number
  #probing: Loop | null = null
  #isDown = false
  /** Set while a probe opens the writer's connection. Never rejects. */
  #connecting: Promise<void> | null = null
  #isStopping = false
  #batchesFailed = 0
  /** The number of batches that the server rejected since one was stored or a probe failed. */
  #rejectedInARow = 0
  #probeAtMs = Number.NEGATIVE_INFINITY
  #confirmedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: WriterOptions) {
    const { connection, clock, logger, metrics, timeoutFactor = 1, listeners = null } = options
    this.#listeners = listeners
    this.#dailyBytes = options.dailyBytes ?? null
    this.#diskSpace = options.diskSpace ?? null
    this.#probeMsMax = PROBE_MS_MAX * timeoutFactor
    this.#logger = logger
    this.#metrics = metrics
    for (const outcome of COUNTED_OUTCOMES) metrics.eventsCommitted.inc({ outcome }, 0)
    this.#heads = new HeadCache(clock)
    const drawSalts = createSaltSource()
    this.#deps = {
      heads: this.#heads,
      sources: () => ({ nowMs: clock(), random: randomFraction, drawSalts }),
      onTry: (tries) => metrics.batchTries.observe(tries),
      onMoved: listeners?.onMoved,
    }
    this.#session = new PgSession({
      connection,
      settings: WRITER_SETTINGS,
      name: 'annals writer',
      workMsMax: COMMIT_MS_MAX,
      timeoutFactor,
    })
    this.#probeSession = new PgSession({
      connection,
      settings: WRITE_PROBE_SETTINGS,
      name: 'annals write probe',
      // No timeout for a probe that waits for a standby: the server wouldn't notice a disconnect.
      workMsMax: null,
      timeoutFactor,
    })
    this.#batcher = new Batcher(
      (items) => this.#commit(this.#createBatch(items)),
      { ...LIMITS, lingerMs: () => (this.#heads.isCrowded() ? CROWDED_LINGER_MS : 0) },
      WEIGHTS,
      (items) => this.#sealAhead(items),
    )
  }

  /**
   * Starts checking whether the database accepts writes, with or without events. Resolves when the first
   * probe has completed or timed out.
   */
  async startProbing(): Promise<void> {
    this.#probing = new Loop({
      name: 'write-probe',
      everyMs: PROBE_EVERY_MS,
      logger: this.#logger,
      run: () => this.#probe(),
    })
    const timeout = delay(this.#probeMsMax, undefined, { ref: false })
    await Promise.race([this.#probing.runNow(), timeout])
  }

  /** False while events are refused because the database doesn't accept writes, or its disk is almost full. */
  get canWrite(): boolean {
    return !this.#isDown && !this.#isDiskLow
  }

  get #isDiskLow(): boolean {
    return this.#diskSpace?.isLow === true
  }

  /** True while a caller waits for the outcome of its event. */
  get isBusy(): boolean {
    return this.#inFlight !== null || this.#batcher.waiting > 0
  }

  /** How many events wait for their batch, and for how long the oldest of them has waited. */
  get backlog(): { events: number; waitedMs: number } {
    return { events: this.#batcher.waiting, waitedMs: this.#batcher.waitedMs() }
  }

  /** Throws if an event of the company would be rejected. Call this before reading the body. */
  refuseWhenFull({ companyId, plan }: { companyId: CompanyId; plan: Plan }): void {
    if (this.#isDown) throw new ApiError('unavailable')
    if (this.#isDiskLow) throw diskLowError()
    if (this.#batcher.isFull(companyId)) throw new ApiError('overloaded')
    this.#dailyBytes?.refuse(companyId, PLAN_TERMS[plan].bytesPerDayMax)
  }

  async submit(item: PendingItem): Promise<Outcome> {
    if (this.#isDown) throw new ApiError('unavailable')
    return await this.#batcher.submit(item)
  }

  /** Either all items are queued or none. Each has its own outcome or rejection reason. */
  async submitAll(items: readonly PendingItem[]): Promise<PromiseSettledResult<Outcome>[]> {
    if (this.#isDown) throw new ApiError('unavailable')
    return await this.#batcher.submitAll(items)
  }

  #createBatch(items: readonly PendingItem[]): Batch {
    return createBatch(items, this.#bindWriters.pop() ?? new BindWriter())
  }

  /** Returns the commit of the sealed batch. */
  #sealAhead(items: readonly PendingItem[]): () => Promise<Outcome[]> {
    const batch = this.#createBatch(items)
    sealAhead(batch, this.#inFlight, this.#deps)
    return () => this.#commit(batch)
  }

  async #commit(batch: Batch): Promise<Outcome[]> {
    const startedAtMs = performance.now()
    const { items, writer } = batch
    this.#inFlight = batch
    using span = startCommitSpan(items)
    try {
      if (this.#connecting) await this.#connecting
      const outcomes = await this.#session.use((client) =>
        commitBatch({ ...this.#deps, client, batch }),
      )
      this.#bindWriters.push(writer)
      this.#countStored(items, outcomes)
      if (outcomes.some(({ kind }) => kind === 'stored')) {
        this.#rejectedInARow = 0
        this.#noteConfirmed()
      }
      this.#metrics.batchCommitSeconds.observe((performance.now() - startedAtMs) / 1_000)
      this.#metrics.batchEvents.observe(items.length)
      this.#countOutcomes(outcomes)
      this.#listeners?.onCommit(new Set(items.map((item) => item.event.workspaceId)))
      return outcomes
    } catch (error) {
      span?.fail(error instanceof ApiError ? error.code : (sqlStateOf(error) ?? 'unknown'))
      throw this.#fail(error, items.length)
    } finally {
      this.#inFlight = null
    }
  }

  #countStored(items: readonly PendingItem[], outcomes: readonly Outcome[]): void {
    items.forEach((item, index) => {
      if (outcomes[index]?.kind !== 'stored') return
      // Deliveries of the event are children of the request.
      item.trace?.request.remember(outcomes[index].id)
      this.#dailyBytes?.add(item.event.companyId, bytesOf(item))
    })
  }

  /** The counter is updated once per batch and outcome, not once per event. */
  #countOutcomes(outcomes: readonly Outcome[]): void {
    for (const [outcome, { length }] of Map.groupBy(outcomes, ({ kind }) => kind)) {
      this.#metrics.eventsCommitted.inc({ outcome }, length)
    }
  }

  /** After any error the outcome is unknown, so the error says so, and all cached heads are discarded. */
  #fail(error: unknown, events: number): unknown {
    this.#heads.forgetAll()
    if (error instanceof ApiError) return error
    this.#logger.error({ event: 'batch.failed', events, err: error })
    this.#metrics.eventsCommitted.inc({ outcome: 'failed' }, events)
    this.#batchesFailed += 1
    this.#probeAtMs = performance.now()
    if (isRejection(error)) {
      this.#rejectedInARow += 1
      this.#probeAtMs += recoveryDelayMs(this.#rejectedInARow)
    }
    this.#goDown(error)
    return new ApiError('unavailable', {
      message:
        'The database did not confirm the write, so the event may or may not be stored. Retry with the same idempotencyKey.',
      cause: error,
    })
  }

  #goDown(cause: unknown): void {
    this.#batcher.rejectWaiting(new ApiError('unavailable', { cause }))
    if (!this.#isDown) this.#logger.error({ event: 'writer.down', err: cause })
    this.#isDown = true
  }

  async #probe(): Promise<void> {
    const startedAtMs = performance.now()
    if (startedAtMs < this.#probeAtMs) return
    const failedBefore = this.#batchesFailed
    const noteFailure = (error: unknown): void => {
      // If a batch was stored meanwhile, only the probe has a problem.
      if (this.#confirmedAtMs >= startedAtMs || this.#isStopping) return
      if (this.#isOnlyProbeLockedOut(error)) {
        this.#probeAtMs = startedAtMs + CONFIRMATION_AGE_MS_MAX
        return
      }
      this.#rejectedInARow = 0
      this.#goDown(error)
    }
    const late = () =>
      noteFailure(new Error(`no write was confirmed within ${this.#probeMsMax} ms`))
    try {
      using _deadline = startDeadline({ timeoutMs: this.#probeMsMax }, late)
      await this.#probeSession.use(probeWrite)
    } catch (error) {
      return noteFailure(error)
    }
    if (this.#batchesFailed > failedBefore) return
    if (this.#isDown) {
      if (!(await this.#recover())) return
    } else {
      // The probe may have taken the last connection that the server had available.
      const failure = await this.#connect()
      if (failure) return noteFailure(failure.error)
    }
    this.#noteConfirmed()
  }

  /**
   * While the writer is down, the next probe isn't delayed: a late success of a batch doesn't end the outage.
   */
  #noteConfirmed(): void {
    this.#confirmedAtMs = performance.now()
    if (!this.#isDown) this.#probeAtMs = this.#confirmedAtMs + CONFIRMATION_AGE_MS_MAX
  }

  /**
   * When the server has no free connections, the writer's own connection may still work. The probe doesn't
   * use that one, because a batch would have to wait for it.
   */
  #isOnlyProbeLockedOut(error: unknown): boolean {
    const isFull = sqlStateOf(error) === SQLSTATE.TOO_MANY_CONNECTIONS
    return isFull && !this.#isDown && this.#session.isConnected
  }

  /** Returns false, and the writer stays down, if the writer can't connect although the probe can. */
  async #recover(): Promise<boolean> {
    if (!this.#inFlight) {
      // The address may point to another server by now, while the old connection
      // still goes to the previous one.
      this.#session.drop()
      if ((await this.#connect()) !== null) return false
    }
    this.#heads.forgetAll()
    this.#isDown = false
    this.#logger.info({ event: 'writer.recovered' })
    return true
  }

  /**
   * Opens the writer's connection, unless it is open or a batch is using it. Returns the error if that fails.
   */
  async #connect(): Promise<{ error: unknown } | null> {
    if (this.#inFlight || this.#session.isConnected) return null
    const failure = this.#session.use(async () => null).catch((error: unknown) => ({ error }))
    // A batch that starts now waits for this, because a session runs one task at a time.
    this.#connecting = failure.then(() => {})
    try {
      return await failure
    } finally {
      this.#connecting = null
    }
  }

  /** Stops the probe first, so that its result can't reject events that were already accepted. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    this.#probeSession.drop()
    await this.#probing?.[Symbol.asyncDispose]()
    await this.#batcher[Symbol.asyncDispose]()
    await this.#session[Symbol.asyncDispose]()
    await this.#probeSession[Symbol.asyncDispose]()
  }
}

function diskLowError(): ApiError {
  return new ApiError('unavailable', {
    message: 'The disk is almost full, so events are refused. Queries still work.',
  })
}

/**
 * The minimum time to stay down. After a single rejection it is 0: the next successful probe ends the outage.
 */
function recoveryDelayMs(rejectedInARow: number): number {
  if (rejectedInARow < 2) return 0
  return Math.min(RECOVERY_DELAY_MS_MAX, RECOVERY_DELAY_MS_MIN * 2 ** (rejectedInARow - 2))
}
