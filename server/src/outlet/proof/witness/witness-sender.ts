import { countUncosigned, listUncosigned } from '../../../ledger/tree/cosignature-store.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { Loop } from '../../../platform/scheduling/loop.ts'
import { type MonotonicClock, monotonicClock } from '../../../platform/time/clock.ts'
import type { WitnessSetting } from '../../../platform/tlog/witness-setting.ts'
import { cosignCheckpoint, type CosignResult } from './cosign-checkpoint.ts'

const INTERVAL_MS = 4_000
const REQUEST_MS_MAX = 10_000
/** Requests spend most of their time waiting for the witness. */
const LANES = 4
const CHAINS_PER_RUN_MAX = 100
/** A witness that fails is retried after 1 s, and at least every 5 minutes. */
const RETRY_MS_MIN = 1_000
const RETRY_MS_MAX = 300_000
/**
 * How many checkpoints in a row a witness has to cosign until its failures are forgotten. If one sufficed, a witness
 * that fails every other request would always be retried after 1 s.
 */
const SUCCESSES_TO_RESUME = 5
/** A checkpoint that a witness refuses is sent again after a minute, and at least every hour. */
const REFUSED_RETRY_MS_MIN = 60_000
const REFUSED_RETRY_MS_MAX = 3_600_000
/** If a witness refuses more chains than this, the others wait until it answers differently. */
const REFUSED_CHAINS_MAX = 1_000

export type WitnessSenderOptions = {
  db: Queryable
  witness: WitnessSetting
  /** Whether this node signs. Only that node sends. */
  isSigning: () => boolean
  logger: Logger
  monotonic?: MonotonicClock
  requestMsMax?: number
  onResult?: (result: Exclude<CosignResult['kind'], 'skipped'>) => void
  onWaitingCount?: (count: number) => void
}

type Retry = { failures: number; atMs: number }

/**
 * Sends checkpoints to one witness. The queue is in the database: the chains whose newest checkpoint this witness
 * hasn't cosigned. So only the newest checkpoint of a chain is sent, a restart loses nothing, and
 * nothing else waits for a witness that is down.
 */
export class WitnessSender implements AsyncDisposable {
  readonly #options: WitnessSenderOptions
  readonly #nowMs: MonotonicClock
  readonly #loop: Loop
  /** When to retry after a failure of the witness itself. */
  #retry: Retry = { failures: 0, atMs: -Infinity }
  /** Consecutive successes since the last failure. */
  #successes = 0
  #picks = 0
  /** When to retry the chains that the witness refuses. */
  readonly #refused = new Map<WorkspaceId, Retry>()

  constructor(options: WitnessSenderOptions) {
    this.#options = options
    this.#nowMs = options.monotonic ?? monotonicClock
    this.#loop = new Loop({
      name: 'witness',
      everyMs: INTERVAL_MS,
      logger: options.logger,
      run: (signal) => this.#run(signal),
    })
  }

  /** Sends new checkpoints. Resolves after each was tried. */
  async wake(): Promise<void> {
    await this.#loop.runNow()
  }

  /** Returns the time until the next run, if it isn't the usual one. */
  async #run(signal: AbortSignal): Promise<number | void> {
    const { db, witness, isSigning, onWaitingCount } = this.#options
    if (!isSigning()) return
    if (this.#nowMs() < this.#retry.atMs) return
    const except = [...this.#refused.keys()].filter((id) => !this.#isDue(id))
    const limit = CHAINS_PER_RUN_MAX
    const chains = await listUncosigned(db, { witness: witness.vkey, except, limit })
    const successes = this.#successes
    await this.#sendAll(this.#retry.failures > 0 ? this.#pickOne(chains) : chains, signal)
    onWaitingCount?.(await countUncosigned(db, witness.vkey))
    const retryMs = this.#retry.atMs - this.#nowMs()
    if (retryMs > 0) return Math.min(INTERVAL_MS, retryMs)
    const hasMore = this.#retry.failures > 0 ? this.#successes > successes : chains.length === limit
    if (hasMore) return 0
  }

  /**
   * Until a witness works again, it gets one request at a time. Each attempt takes another chain, because
   * the checkpoint itself may be the cause.
   */
  #pickOne(chains: readonly WorkspaceId[]): WorkspaceId[] {
    this.#picks += 1
    const picked = chains[this.#picks % chains.length]
    return picked === undefined ? [] : [picked]
  }

  #isDue(workspaceId: WorkspaceId): boolean {
    return (this.#refused.get(workspaceId)?.atMs ?? -Infinity) <= this.#nowMs()
  }

  async #sendAll(chains: readonly WorkspaceId[], signal: AbortSignal): Promise<void> {
    const left = chains.values()
    const runLane = async (): Promise<void> => {
      for (const workspaceId of left) {
        await this.#send(workspaceId, signal)
        if (signal.aborted || this.#nowMs() < this.#retry.atMs) return
      }
    }
    await Promise.all(Array.from({ length: LANES }, runLane))
  }

  async #send(workspaceId: WorkspaceId, stop: AbortSignal): Promise<void> {
    const { db, witness, onResult, requestMsMax = REQUEST_MS_MAX } = this.#options
    const signal = AbortSignal.any([stop, AbortSignal.timeout(requestMsMax)])
    const result = await cosignCheckpoint({ db, witness, signal }, workspaceId)
    if (stop.aborted || result.kind === 'skipped') return
    onResult?.(result.kind)
    if (result.kind === 'cosigned') this.#resume(workspaceId)
    else if (result.kind === 'refused') this.#postpone(workspaceId, result.reason)
    else this.#pause(result.reason)
  }

  #resume(workspaceId: WorkspaceId): void {
    const { logger, witness } = this.#options
    this.#refused.delete(workspaceId)
    this.#successes += 1
    if (this.#retry.failures === 0 || this.#successes < SUCCESSES_TO_RESUME) return
    this.#retry = { failures: 0, atMs: -Infinity }
    logger.info({ event: 'cosignature.resumed', witness: witness.key.name })
  }

  #postpone(workspaceId: WorkspaceId, reason: string): void {
    const { logger, witness } = this.#options
    const failures = (this.#refused.get(workspaceId)?.failures ?? 0) + 1
    const waitMs = Math.min(REFUSED_RETRY_MS_MIN * 2 ** (failures - 1), REFUSED_RETRY_MS_MAX)
    this.#refused.set(workspaceId, { failures, atMs: this.#nowMs() + waitMs })
    const fields = { witness: witness.key.name, workspaceId, reason }
    logger.warn({ event: 'cosignature.refused', ...fields })
    if (this.#refused.size > REFUSED_CHAINS_MAX) this.#pause('it refuses too many checkpoints')
  }

  #pause(reason: string): void {
    // The requests that run at the same time fail together.
    if (this.#nowMs() < this.#retry.atMs) return
    const { logger, witness } = this.#options
    this.#successes = 0
    const failures = this.#retry.failures + 1
    const waitMs = Math.min(RETRY_MS_MIN * 2 ** (failures - 1), RETRY_MS_MAX)
    this.#retry = { failures, atMs: this.#nowMs() + waitMs }
    logger.warn({ event: 'cosignature.failed', witness: witness.key.name, reason, waitMs })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
  }
}
