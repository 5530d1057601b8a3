import { tooManyArchiveReads } from '../ledger/segment/archive-refusal.ts'
import {
  FairSemaphore,
  QueueFullError,
  type SemaphoreLimits,
} from '../platform/scheduling/fair-semaphore.ts'
import type { Principal } from '../tenancy/principal.ts'

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
    { companyId, keyId }: Pick<Principal, 'companyId' | 'keyId'>,
    disconnected: AbortSignal,
  ): Promise<Disposable> {
    try {
      return await this.#semaphore.take(companyId, disconnected, keyId)
    } catch (error) {
      throw error instanceof QueueFullError ? tooManyArchiveReads(error) : error
    }
  }
}
