import { ApiError } from '../../errors.ts'
import { findHotFloor, type HotFloor } from '../../ledger/hot/hot-floor.ts'
import type { ChainReads } from '../../ledger/replica/chain-reads.ts'
import { QueueFullError } from '../../platform/scheduling/fair-semaphore.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { TimedSemaphore } from '../../platform/scheduling/timed-semaphore.ts'
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
  readonly #reads: ChainReads
  readonly #semaphore = new TimedSemaphore(SEMAPHORE_LIMITS)

  constructor(reads: ChainReads) {
    this.#reads = reads
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
      return await withRowOwner(companyId, () =>
        this.#reads.read(workspaceId, ({ db }) => withTimeLimit(db, readHot)),
      )
    }
    const results: T[] = []
    for (let start = 0; start < workspaceIds.length; start += READS_AT_ONCE_MAX) {
      const some = workspaceIds.slice(start, start + READS_AT_ONCE_MAX)
      results.push(...(await Promise.all(some.map(readOne))).flat())
    }
    return results
  }

  /** Waits for a permit to search. */
  async take(companyId: CompanyId, signal: AbortSignal | null): Promise<Disposable> {
    try {
      return await this.#semaphore.take(companyId, signal)
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
