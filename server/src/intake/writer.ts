import { ApiError } from '../errors.ts'
import { createSaltSource } from '../ledger/commitment.ts'
import type { Clock } from '../platform/clock.ts'
import { randomFraction, type WorkspaceId } from '../platform/id.ts'
import type { Logger } from '../platform/logger.ts'
import { Loop } from '../platform/loop.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { Connection } from '../platform/pg.ts'
import { BindWriter } from '../platform/pg-bind.ts'
import { PgSession } from '../platform/pg-session.ts'
import { Batcher } from './batcher.ts'
import { commitBatch, type CommitDeps, sealAhead, type SealedAhead } from './commit-batch.ts'
import { HeadCache } from './head-cache.ts'
import { bytesOf, type Outcome, type PendingItem } from './pending-item.ts'

type WriterOptions = {
  connection: Connection
  clock: Clock
  logger: Logger
  metrics: Metrics
  /** Told after every commit whose events were stored, for whoever follows the chains. */
  onCommit?: (workspaceIds: ReadonlySet<WorkspaceId>) => void
}

const LIMITS = {
  itemsPerBatchMax: 256,
  waitingMin: 2_048,
  waitingMax: 16_384,
  waitMsMax: 500,
} as const
const WEIGHTS = {
  bytesOf,
  bytesPerBatchMax: 4 * 1_024 * 1_024,
  waitingBytesMax: 64 * 1_024 * 1_024,
} as const
/** With four nodes on the same workspaces this doubled the batches, and with them the rate. */
const CROWDED_LINGER_MS = 4
const RECONNECT_EVERY_MS = 100

/**
 * Settings of the writer's connection. Its few statements always have the same good plan, which a
 * table without statistics would hide: a sequential scan of all keys for every batch.
 */
export const WRITER_SETTINGS = [
  'role=annals_serving',
  'enable_seqscan=off',
  'plan_cache_mode=force_generic_plan',
  // A node that the network has cut off cannot give up its locks: the server does, for the others.
  'idle_in_transaction_session_timeout=2s',
]

/**
 * The one writer of events in this process: a queue, a connection and the heads it knows.
 *
 *   up ──the database does not answer──▶ down: everyone is refused at once, nothing queues
 *   down ──a connection is made──▶ up, with no head remembered
 */
export class Writer implements AsyncDisposable {
  readonly #batcher: Batcher<PendingItem, Outcome>
  readonly #session: PgSession
  readonly #heads: HeadCache
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #metrics: Metrics
  readonly #onCommit: (workspaceIds: ReadonlySet<WorkspaceId>) => void
  readonly #drawSalts = createSaltSource()
  /** Two: one holds the batch that is at the database, the other the one that goes next. */
  readonly #bindWriters = [new BindWriter(), new BindWriter()] as const
  #bindWriterInUse: BindWriter = this.#bindWriters[0]
  #ahead: { items: PendingItem[]; writer: BindWriter; sealed: SealedAhead | null } | null = null
  readonly #reconnect: Loop
  #isDown = false

  constructor({ connection, clock, logger, metrics, onCommit = () => {} }: WriterOptions) {
    this.#onCommit = onCommit
    this.#clock = clock
    this.#logger = logger
    this.#metrics = metrics
    this.#heads = new HeadCache(clock)
    this.#session = new PgSession({ connection, settings: WRITER_SETTINGS, name: 'annals writer' })
    this.#batcher = new Batcher(
      (items) => this.#commit(items),
      { ...LIMITS, lingerMs: () => (this.#heads.isCrowded() ? CROWDED_LINGER_MS : 0) },
      WEIGHTS,
      (items) => this.#prepare(items),
    )
    this.#reconnect = new Loop({
      name: 'writer-reconnect',
      everyMs: RECONNECT_EVERY_MS,
      logger,
      run: () => this.#comeBack(),
    })
  }

  /** Asked before a body is read: whether an event would be refused for lack of room. */
  refuseWhenFull(): void {
    if (this.#isDown) throw new ApiError('unavailable')
    if (this.#batcher.isFull()) throw new ApiError('overloaded')
  }

  async submit(item: PendingItem): Promise<Outcome> {
    if (this.#isDown) throw new ApiError('unavailable')
    return await this.#batcher.submit(item)
  }

  /** All are let in or none; each has its own outcome, or its own reason. */
  async submitAll(items: readonly PendingItem[]): Promise<PromiseSettledResult<Outcome>[]> {
    if (this.#isDown) throw new ApiError('unavailable')
    return await this.#batcher.submitAll(items)
  }

  async #commit(items: PendingItem[]): Promise<Outcome[]> {
    const startedAtMs = performance.now()
    const ahead = this.#ahead?.items === items ? this.#ahead : null
    this.#ahead = null
    this.#bindWriterInUse = ahead?.writer ?? this.#bindWriters[0]
    try {
      const outcomes = await this.#session.use((client) =>
        commitBatch(client, items, this.#depsWith(this.#bindWriterInUse), ahead?.sealed),
      )
      this.#metrics.batchCommitSeconds.observe((performance.now() - startedAtMs) / 1_000)
      this.#metrics.batchEvents.observe(items.length)
      this.#onCommit(new Set(items.map((item) => item.event.workspaceId)))
      return outcomes
    } catch (error) {
      throw this.#fail(error, items.length)
    }
  }

  #prepare(items: PendingItem[]): void {
    const [first, second] = this.#bindWriters
    const writer = this.#bindWriterInUse === first ? second : first
    this.#ahead = { items, writer, sealed: sealAhead(items, this.#depsWith(writer)) }
  }

  #depsWith(writer: BindWriter): CommitDeps {
    return {
      heads: this.#heads,
      writer,
      sources: () => ({
        nowMs: this.#clock(),
        random: randomFraction,
        drawSalts: this.#drawSalts,
      }),
      onTry: (tries) => this.#metrics.batchTries.observe(tries),
    }
  }

  /** Whatever went wrong, the outcome is unknown: no guess is told, and no head is believed. */
  #fail(error: unknown, events: number): unknown {
    this.#heads.forgetAll()
    if (error instanceof ApiError) return error
    this.#logger.error({ event: 'batch.failed', events, err: error })
    const unavailable = new ApiError('unavailable', {
      message:
        'The database did not answer, so it is unknown whether the event was stored. Send it again with the same idempotencyKey.',
      cause: error,
    })
    this.#isDown = true
    this.#batcher.rejectWaiting(new ApiError('unavailable', { cause: error }))
    void this.#reconnect.runNow()
    return unavailable
  }

  async #comeBack(): Promise<void> {
    if (!this.#isDown) return
    try {
      await this.#session.use((client) => client.query('select 1'))
    } catch {
      return
    }
    this.#isDown = false
    this.#logger.info({ event: 'writer.recovered' })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#batcher[Symbol.asyncDispose]()
    await this.#reconnect[Symbol.asyncDispose]()
    await this.#session[Symbol.asyncDispose]()
  }
}
