import { ApiError } from '../../errors.ts'
import { findHotFloor, type HotFloor } from '../../ledger/hot-floor.ts'
import { FairSemaphore, QueueFullError } from '../../platform/fair-semaphore.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import { withRowOwner } from '../../platform/row-cost.ts'
import { requestShare } from '../../platform/time-slice.ts'
import { withTimeLimit } from './time-limit-store.ts'

/** Workspaces are read side by side, but one request must not take the whole pool. */
const READS_AT_ONCE_MAX = 4
/**
 * Of the node's 20 connections, which calls with keys need too. A company has at most half of the
 * turns, so that its slow searches don't keep another company waiting.
 */
const SEMAPHORE_LIMITS = {
  permitsMax: 8,
  permitsPerCompanyMax: 4,
  waitingMax: 400,
  waitingPerCompanyMax: 100,
  waitMsMax: 20_000,
  share: requestShare,
}
const RETRY_SECONDS = 5

export type Hot = HotFloor & { fromId: string }

/** What a search sees: workspaces of a company, and from when on. */
export type Scope = {
  companyId: CompanyId
  workspaceIds: readonly WorkspaceId[]
  hotSinceMs: number
  /** Aborted when nobody waits for the answer any more. */
  signal?: AbortSignal
}

/**
 * The searches of the explorer on a node. One may take seconds: without a bound a few of them would
 * hold every connection, and calls with keys, which need one for a moment, would be refused.
 */
export class Searches {
  readonly #db: Queryable
  readonly #turns = new FairSemaphore(SEMAPHORE_LIMITS)

  constructor(db: Queryable) {
    this.#db = db
  }

  /**
   * Reads every workspace that has hot events, a few at a time; no statement spans them. The
   * statements of a read see one state of the database, and none takes longer than somebody waits. Who
   * goes away gives up his place; a read that has begun goes on to its end.
   */
  async readEach<T>(
    { companyId, workspaceIds, hotSinceMs, signal }: Scope,
    read: (db: Queryable, workspaceId: WorkspaceId, hot: Hot) => Promise<T>,
  ): Promise<T[]> {
    const readOne = async (workspaceId: WorkspaceId): Promise<T[]> => {
      using _turn = await this.#takeTurn(companyId, signal)
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

  async #takeTurn(companyId: CompanyId, gone: AbortSignal | undefined): Promise<Disposable> {
    try {
      return await this.#turns.take(companyId, gone ?? null)
    } catch (error) {
      if (!(error instanceof QueueFullError)) throw error
      throw new ApiError('overloaded', {
        message: 'Too many searches run on this node. Retry after the given delay.',
        retryAfterSeconds: RETRY_SECONDS,
        cause: error,
      })
    }
  }
}
