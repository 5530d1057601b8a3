import { ApiError } from '../../errors.ts'
import { listHeadSeqs } from '../../ledger/head-seq-store.ts'
import type { CompanyId, KeyId, WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { untilAborted } from '../../platform/time/deadline.ts'

const WAITING_MAX = 1_000
const WAITING_PER_KEY_MAX = 10
const RETRY_SECONDS = 5
/** Polling finds commits of other nodes; commits of this node wake the waiting requests. */
const POLL_MS = 200

type FeedWaitersOptions = {
  db: Queryable
  logger: Logger
  /** How many connections the node accepts. Waiting requests use at most half of them. */
  connectionsMax: number
}

type Reader = { companyId: CompanyId; keyId: KeyId; workspaceId: WorkspaceId }

/** A request that may wait for new events of a chain. */
type Listener = Reader & {
  /** The chain may have grown since the last wait. */
  hasNews: boolean
  /** Ends the current wait. */
  end: () => void
  /** The last event of the chain that the request knows. */
  afterSeq: number
}

/**
 * The feed requests of this node that wait for new events. They hold no connection: a commit of this node
 * wakes them, and one statement per poll finds the commits of other nodes for all of them. Without waiting
 * requests, nothing is read.
 *
 * A full node refuses further requests of the company that has the most. For another company, it ends that
 * company's oldest wait with an empty page, so that no company can take the whole limit.
 */
export class FeedWaiters implements AsyncDisposable {
  readonly #db: Queryable
  readonly #loop: Loop
  readonly #waitingMax: number
  readonly #listeners = new Map<WorkspaceId, Set<Listener>>()
  /** Oldest first. */
  readonly #waiting = new Set<Listener>()
  #isClosing = false

  constructor({ db, logger, connectionsMax }: FeedWaitersOptions) {
    this.#db = db
    this.#waitingMax = Math.min(WAITING_MAX, Math.floor(connectionsMax / 2))
    this.#loop = new Loop({ name: 'feed', everyMs: POLL_MS, logger, run: () => this.#poll() })
  }

  /** The number of waiting requests. */
  get size(): number {
    return this.#waiting.size
  }

  /** Call it before reading the chain, so that no commit between the read and the wait is missed. */
  listen(reader: Reader): Listener & Disposable {
    const { workspaceId } = reader
    const stop = () => this.#forget(listener)
    const listener = {
      ...reader,
      hasNews: false,
      end: () => {},
      afterSeq: 0,
      [Symbol.dispose]: stop,
    }
    const others = this.#listeners.get(workspaceId) ?? new Set()
    this.#listeners.set(workspaceId, others.add(listener))
    return listener
  }

  #forget(listener: Listener): void {
    const { workspaceId } = listener
    const listeners = this.#listeners.get(workspaceId)
    listeners?.delete(listener)
    if (listeners?.size === 0) this.#listeners.delete(workspaceId)
  }

  /**
   * Waits until the chain has events after `afterSeq`, and returns whether it may have some. Throws the reason
   * of the signal if it aborts, and refuses to wait at a limit.
   */
  async wait(
    listener: Listener,
    { afterSeq, waitMs, signal }: { afterSeq: number; waitMs: number; signal: AbortSignal },
  ): Promise<boolean> {
    if (!listener.hasNews && !this.#isClosing && waitMs > 0) {
      this.#admit(listener)
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, waitMs)
      listener.end = resolve
      listener.afterSeq = afterSeq
      this.#waiting.add(listener)
      try {
        await untilAborted(promise, signal)
      } finally {
        clearTimeout(timer)
        this.#waiting.delete(listener)
      }
    }
    const { hasNews } = listener
    listener.hasNews = false
    return hasNews
  }

  #admit({ keyId, companyId }: Reader): void {
    const ofKey = this.#waiting.values().filter((other) => other.keyId === keyId)
    if ([...ofKey].length >= WAITING_PER_KEY_MAX) {
      throw new ApiError('rate_limited', {
        message: `This key has ${WAITING_PER_KEY_MAX} feed requests waiting, which is the maximum. Wait until one of them ends.`,
        retryAfterSeconds: RETRY_SECONDS,
      })
    }
    if (this.#waiting.size < this.#waitingMax) return
    const byCompany = Map.groupBy(this.#waiting, (other) => other.companyId)
    const [most = []] = [...byCompany.values()].toSorted((a, b) => b.length - a.length)
    const own = byCompany.get(companyId)?.length ?? 0
    const [oldest] = most
    if (!oldest || own + 1 >= most.length) {
      throw new ApiError('overloaded', {
        message: `This node has ${this.#waitingMax} feed requests waiting, which is the maximum. Retry after the delay in the Retry-After header.`,
        retryAfterSeconds: RETRY_SECONDS,
      })
    }
    this.#waiting.delete(oldest)
    oldest.end()
  }

  /** A hint that these chains grew. */
  wakeFor(workspaceIds: Iterable<WorkspaceId>): void {
    if (this.#listeners.size === 0) return
    for (const id of workspaceIds) this.#listeners.get(id)?.forEach(wake)
  }

  async #poll(): Promise<void> {
    const followed = new Set(this.#waiting.values().map(({ workspaceId }) => workspaceId))
    const heads = await listHeadSeqs(this.#db, [...followed])
    for (const listener of this.#waiting) {
      const { workspaceId, afterSeq } = listener
      const headSeq = heads.get(workspaceId)
      // Lower if the database was restored from a backup. Then the request has to be refused.
      if (headSeq !== undefined && headSeq !== afterSeq) wake(listener)
    }
  }

  /** Ends every wait with an empty page, and lets no further request wait. */
  close(): void {
    this.#isClosing = true
    for (const { end } of this.#waiting) end()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
    await this.#loop[Symbol.asyncDispose]()
  }
}

function wake(listener: Listener): void {
  listener.hasNews = true
  listener.end()
}
