import { tooManyArchiveReads } from '../ledger/segment/archive-refusal.ts'
import {
  FairSemaphore,
  QueueFullError,
  type SemaphoreLimits,
} from '../platform/scheduling/fair-semaphore.ts'
import type { CompanyId } from '../platform/id.ts'

const LIMITS: SemaphoreLimits = {
  permitsMax: 4,
  permitsPerCompanyMax: 2,
  waitingMax: 200,
  waitingPerCompanyMax: 50,
  waitMsMax: 10_000,
}

/**
 * Limits how many requests of a route read events from the archive at once on a node. Further requests wait.
 * Release the database slot before you take a permit, so that storage that hangs doesn't block the database.
 */
export class ArchiveReadLimiter {
  readonly #semaphore = new FairSemaphore(LIMITS)

  /** Stops waiting if the client disconnects. */
  async take(
    { companyId, callerId }: { companyId: CompanyId; callerId: string },
    disconnected: AbortSignal,
  ): Promise<Disposable> {
    try {
      return await this.#semaphore.take(companyId, disconnected, callerId)
    } catch (error) {
      throw error instanceof QueueFullError ? tooManyArchiveReads(error) : error
    }
  }
}
