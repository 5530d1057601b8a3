import { ApiError } from '../../errors.ts'
import { FairTurns, TurnsTaken } from '../../platform/fair-turns.ts'
import type { CompanyId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'

/**
 * Of the node's 20 connections. Decoding a page of 2 MB takes about 5 ms of the main thread, and the
 * event loop decodes in one turn everything that has arrived. With twenty such reads at once, a turn
 * took up to 160 ms.
 */
const TURN_LIMITS = {
  turnsMax: 12,
  turnsPerCompanyMax: 4,
  waitingMax: 1_000,
  waitingPerCompanyMax: 200,
  waitMsMax: 10_000,
}
const RETRY_SECONDS = 1

/** The reads of event pages on a node. A company has few at once, and companies take turns. */
export class PageReads {
  readonly #db: Queryable
  readonly #turns = new FairTurns(TURN_LIMITS)

  constructor(db: Queryable) {
    this.#db = db
  }

  /** A read that waits is skipped when the signal aborts; one that has begun runs to its end. */
  async read<T>(
    { companyId, signal }: { companyId: CompanyId; signal?: AbortSignal },
    read: (db: Queryable) => Promise<T>,
  ): Promise<T> {
    using _turn = await this.#take(companyId, signal)
    return await read(this.#db)
  }

  async #take(companyId: CompanyId, signal: AbortSignal | undefined): Promise<Disposable> {
    try {
      return await this.#turns.take(companyId, signal ?? null)
    } catch (error) {
      if (!(error instanceof TurnsTaken)) throw error
      throw new ApiError('overloaded', {
        message:
          'Too many pages of events are being read on this node. Retry after the given delay.',
        retryAfterSeconds: RETRY_SECONDS,
        cause: error,
      })
    }
  }
}
