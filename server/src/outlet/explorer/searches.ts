import { ApiError } from '../../errors.ts'
import { findHotFloor, type HotFloor } from '../../ledger/hot/hot-floor.ts'
import { FairSemaphore, QueueFullError } from '../../platform/scheduling/fair-semaphore.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { ThreadShare } from '../../platform/scheduling/thread-share.ts'
import { isContended, requestShare } from '../../platform/scheduling/time-slice.ts'
import { withTimeLimit } from './time-limit-store.ts'

/** Workspaces are read in parallel, but one request must not take the whole pool. */
const READS_AT_ONCE_MAX = 4
/**
 * The node has 20 connections, which API calls need too. A company gets at most half of the permits, so that
 * its slow searches don't keep other companies waiting.
 */
const SEMAPHORE_LIMITS = {
  permitsMax: 8,
  permitsPerCompanyMax: 4,
  waitingMax: 400,
  waitingPerCompanyMax: 100,
  waitMsMax: 20_000,
}
/** About what a company uses that searches all the time, one search after another. */
const FREE_SEARCH_MS = 2_000
/** A company that has searched less recently doesn't pause. */
const LIGHT_SEARCH_MS = 500
const RETRY_SECONDS = 5

export type Hot = HotFloor & { fromId: string }

/** What a search covers: workspaces of a company, and the start of its hot time. */
export type Scope = {
  companyId: CompanyId
  workspaceIds: readonly WorkspaceId[]
  hotSinceMs: number
  /** Aborted when the client disconnects. */
  signal?: AbortSignal
}

/**
 * Limits the searches on a node: the explorer's, and lists that are filtered by metadata or text. A search can
 * take seconds, so without a limit a few of them would take every connection, and API calls, which need one only
 * briefly, would be refused.
 */
export class Searches {
  readonly #db: Queryable
  /**
   * How long each company has searched recently. A search that counts keeps a core of the database busy, but
   * returns few rows, so it costs the main thread nothing.
   */
  readonly #searchShare = new ThreadShare({
    nowMs: () => performance.now(),
    isContended,
    freeMs: FREE_SEARCH_MS,
    lightMs: LIGHT_SEARCH_MS,
    pauseRatio: 1,
    // The permits limit all companies together.
    isSharedLimited: false,
  })
  readonly #semaphore = new FairSemaphore({
    ...SEMAPHORE_LIMITS,
    share: {
      pauseMs: (companyId) =>
        Math.max(requestShare.pauseMs(companyId), this.#searchShare.pauseMs(companyId)),
      isOver: (companyId) => requestShare.isOver(companyId) || this.#searchShare.isOver(companyId),
    },
  })

  constructor(db: Queryable) {
    this.#db = db
  }

  /**
   * Reads every workspace that has hot events, a few at a time. No statement spans workspaces. All statements
   * of a read see the same snapshot, and each has a timeout. A client that disconnects leaves the queue, but
   * a read that has started runs to its end.
   */
  async readEach<T>(
    { companyId, workspaceIds, hotSinceMs, signal }: Scope,
    read: (db: Queryable, workspaceId: WorkspaceId, hot: Hot) => Promise<T>,
  ): Promise<T[]> {
    const readOne = async (workspaceId: WorkspaceId): Promise<T[]> => {
      using _permit = await this.take(companyId, signal ?? null)
      const readHot = async (db: Queryable): Promise<T[]> => {
        const hot = await findHotFloor(db, workspaceId, { hotSinceMs, afterSeq: null })
        const { fromId } = hot
        return fromId === null ? [] : [await read(db, workspaceId, { ...hot, fromId })]
      }
      return await withRowOwner(companyId, () => withTimeLimit(this.#db, readHot))
    }
    const results: T[] = []
    for (let start = 0; start < workspaceIds.length; start += READS_AT_ONCE_MAX) {
      const some = workspaceIds.slice(start, start + READS_AT_ONCE_MAX)
      results.push(...(await Promise.all(some.map(readOne))).flat())
    }
    return results
  }

  /** Waits for a permit to search. The time until it is released counts as time that the company has searched. */
  async take(companyId: CompanyId, signal: AbortSignal | null): Promise<Disposable> {
    try {
      const permit = await this.#semaphore.take(companyId, signal)
      const startedAtMs = performance.now()
      const release = () => {
        const ms = performance.now() - startedAtMs
        this.#searchShare.charge(companyId, { cpuMs: ms, wallMs: ms })
        permit[Symbol.dispose]()
      }
      return { [Symbol.dispose]: release }
    } catch (error) {
      if (!(error instanceof QueueFullError)) throw error
      throw new ApiError('overloaded', {
        message: 'Too many searches are running. Try again in a moment.',
        retryAfterSeconds: RETRY_SECONDS,
        cause: error,
      })
    }
  }
}
