import { countRefused, listPublished, listUnsigned } from '../../ledger/tree/checkpoint-store.ts'
import { newId, type WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { StorageError } from '../../platform/object-store/object-store.ts'
import { isOutage } from '../../platform/pg/pg-error.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { type MonotonicClock, monotonicClock } from '../../platform/time/clock.ts'
import type { SignOutcome, TreeSigner } from './signer.ts'
import { claimSignerLease, releaseSignerLease, type SignerId } from './signer-lease-store.ts'

/** With the interval below, another node takes over within 14 s. */
const LEASE_MS = 10_000
const INTERVAL_MS_MAX = 4_000
/** The rest of the promised time is for the work itself. */
const INTERVAL_SHARE = 0.8
/** Most of the time is spent waiting for the database and the storage. */
const LANES = 4
const WORKSPACES_PER_LIST = 100
/** Small, so that a company that becomes due during a pass waits only for this many workspaces of each other one. */
const WORKSPACES_PER_COMPANY = 2 * LANES
const RETRY_MS = 60_000
/** A restore takes hours. */
const RESTORE_RETRY_MS = 600_000
/** All published chains are compared with what was signed, this many per pass, once per hour. */
const CHECKED_PER_PASS = 50
const CHECK_INTERVAL_MS = 3_600_000
const COUNT_INTERVAL_MS = 10_000

type WorkerOptions = {
  db: Queryable
  signer: Pick<TreeSigner, 'sign' | 'currentKey'>
  checkpointSeconds: number
  logger: Logger
  monotonic?: MonotonicClock
  onRefusedCount?: (count: number) => void
  /** Called at the start and when the signing key has changed. */
  onKey?: () => Promise<void>
  /** Called after each complete pass. */
  checkLost?: (signal: AbortSignal) => Promise<void>
  /** Called after checkpoints were published. */
  onPublished?: () => void
}

type SignerWorker = AsyncDisposable & {
  /** Whether this node had the lease a moment ago. */
  isSigning: () => boolean
}

/** Signs new events of all chains, on one node at a time. */
export function startSignerWorker(options: WorkerOptions): SignerWorker {
  const { db, logger, checkpointSeconds } = options
  const holder: SignerId = newId()
  const passes = new SigningPasses(options, holder)
  const intervalMs = checkpointSeconds * 1_000 * INTERVAL_SHARE
  const loop = new Loop({
    name: 'signer',
    everyMs: Math.min(intervalMs, INTERVAL_MS_MAX),
    logger,
    run: (signal) => passes.run(intervalMs, signal),
  })
  return {
    isSigning: () => passes.isSigning,
    [Symbol.asyncDispose]: async () => {
      await loop[Symbol.asyncDispose]()
      // If the database is out of reach, the lease expires on its own.
      await releaseSignerLease(db, holder).catch(() => {})
    },
  }
}

class SigningPasses {
  readonly #options: WorkerOptions
  readonly #holder: SignerId
  readonly #nowMs: MonotonicClock
  readonly #retryAtMs = new Map<WorkspaceId, number>()
  #nextPassAtMs = -Infinity
  #leasedUntilMs = -Infinity
  /** Until then, another node can sign. */
  #yieldsUntilMs = -Infinity
  /** In the current pass. */
  #failures = 0
  #signatures = 0
  /** The last chain that was compared. Null before the first one. */
  #checkedId: WorkspaceId | null = null
  #nextCheckAtMs = -Infinity
  #nextCountAtMs = -Infinity
  /** The key that all published chains were compared with last. */
  #currentKey: string | null = null

  constructor(options: WorkerOptions, holder: SignerId) {
    this.#options = options
    this.#holder = holder
    this.#nowMs = options.monotonic ?? monotonicClock
  }

  get isSigning(): boolean {
    return this.#nowMs() < this.#leasedUntilMs
  }

  async run(intervalMs: number, signal: AbortSignal): Promise<number | void> {
    if (this.#nowMs() < this.#yieldsUntilMs || !(await this.#hasLease())) return
    // A timer can be early by less than a millisecond.
    const startsInMs = this.#nextPassAtMs - this.#nowMs()
    if (startsInMs > 0) return Math.min(startsInMs, INTERVAL_MS_MAX)
    const endsAtMs = this.#nowMs() + intervalMs
    const isComplete = await this.#signAll(endsAtMs, signal)
    if (this.#failures > 0 && this.#signatures === 0) return await this.#yieldLease()
    this.#nextPassAtMs = isComplete ? endsAtMs : -Infinity
    if (isComplete) {
      await this.#checkKey()
      await this.#checkSome(signal)
      await this.#options.checkLost?.(signal)
    }
    await this.#countRefused()
    const waitMs = Math.max(0, endsAtMs - this.#nowMs())
    if (waitMs < INTERVAL_MS_MAX) return isComplete ? waitMs : 0
  }

  /** Counts less often than it signs, because an idle node should send few statements. */
  async #countRefused(): Promise<void> {
    const { db, onRefusedCount } = this.#options
    if (!onRefusedCount || this.#nowMs() < this.#nextCountAtMs) return
    this.#nextCountAtMs = this.#nowMs() + COUNT_INTERVAL_MS
    onRefusedCount(await countRefused(db))
  }

  /** This node may have the wrong key or no access to the storage, and another one can sign. */
  async #yieldLease(): Promise<void> {
    this.#leasedUntilMs = -Infinity
    this.#yieldsUntilMs = this.#nowMs() + LEASE_MS
    await releaseSignerLease(this.#options.db, this.#holder)
  }

  async #hasLease(): Promise<boolean> {
    const { db } = this.#options
    const untilMs = this.#nowMs() + LEASE_MS
    const hasLease = await claimSignerLease(db, { holder: this.#holder, leaseMs: LEASE_MS })
    this.#leasedUntilMs = hasLease ? untilMs : -Infinity
    return hasLease
  }

  /**
   * Signs each chain that has new events. Companies take turns. A chain that is far behind is signed in steps until
   * the next pass is due, so that it doesn't delay the others. Returns false if there is more to do.
   */
  async #signAll(endsAtMs: number, signal: AbortSignal): Promise<boolean> {
    const { db } = this.#options
    this.#failures = 0
    this.#signatures = 0
    const done = new Set<WorkspaceId>()
    while (!signal.aborted) {
      const except = [...done, ...this.#waiting()]
      const unsigned = await listUnsigned(db, {
        except,
        perCompany: WORKSPACES_PER_COMPANY,
        limit: WORKSPACES_PER_LIST,
      })
      if (unsigned.length === 0) return true
      await this.#inLanes(unsigned, signal, (workspaceId, outcome) => {
        if (outcome !== 'more') done.add(workspaceId)
        if (outcome === 'failed') this.#failures += 1
        else this.#signatures += 1
      })
      this.#options.onPublished?.()
      if (this.#nowMs() >= endsAtMs || !(await this.#hasLease())) return false
    }
    return false
  }

  /** After a key change, signs all chains with the new key, even those without new events. */
  async #checkKey(): Promise<void> {
    const { signer, onKey } = this.#options
    try {
      const key = await signer.currentKey()
      if (key === this.#currentKey) return
      await onKey?.()
      this.#currentKey = key
      this.#checkedId = null
      this.#nextCheckAtMs = -Infinity
    } catch (error) {
      // In that case signing fails too, and the archive logs its own warning. The next pass retries.
      if (!(error instanceof StorageError)) throw error
    }
  }

  /** Finds chains that were rolled back without new events, and publishes what a crash left behind. */
  async #checkSome(signal: AbortSignal): Promise<void> {
    if (this.#nowMs() < this.#nextCheckAtMs) return
    const page = { afterId: this.#checkedId, limit: CHECKED_PER_PASS }
    const published = await listPublished(this.#options.db, page)
    const waiting = new Set(this.#waiting())
    await this.#inLanes(
      published.filter((id) => !waiting.has(id)),
      signal,
    )
    this.#checkedId = published.at(-1) ?? null
    if (published.length < CHECKED_PER_PASS) {
      this.#checkedId = null
      this.#nextCheckAtMs = this.#nowMs() + CHECK_INTERVAL_MS
    }
  }

  async #inLanes(
    workspaceIds: readonly WorkspaceId[],
    signal: AbortSignal,
    onEnd: (workspaceId: WorkspaceId, outcome: SignOutcome | 'failed') => void = () => {},
  ): Promise<void> {
    const left = workspaceIds.values()
    const runLane = async (): Promise<void> => {
      for (const workspaceId of left) {
        if (signal.aborted) return
        onEnd(workspaceId, await this.#signOne(workspaceId, signal))
      }
    }
    await Promise.all(Array.from({ length: LANES }, runLane))
  }

  async #signOne(workspaceId: WorkspaceId, signal: AbortSignal): Promise<SignOutcome | 'failed'> {
    const { signer, logger } = this.#options
    try {
      const outcome = await signer.sign(workspaceId, signal)
      if (outcome === 'refused') this.#retryLater(workspaceId)
      if (outcome === 'restoring') this.#retryLater(workspaceId, RESTORE_RETRY_MS)
      return outcome
    } catch (error) {
      if (isOutage(error)) throw error
      if (!signal.aborted) logger.error({ event: 'signer.failed', workspaceId, err: error })
      this.#retryLater(workspaceId)
      return 'failed'
    }
  }

  #retryLater(workspaceId: WorkspaceId, waitMs = RETRY_MS): void {
    this.#retryAtMs.set(workspaceId, this.#nowMs() + waitMs)
  }

  /** The chains that failed, were refused or must be restored, a short time ago. */
  #waiting(): WorkspaceId[] {
    for (const [workspaceId, atMs] of this.#retryAtMs) {
      if (atMs <= this.#nowMs()) this.#retryAtMs.delete(workspaceId)
    }
    return [...this.#retryAtMs.keys()]
  }
}
