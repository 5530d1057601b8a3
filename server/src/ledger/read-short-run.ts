import type { ObjectStore } from '../platform/object-store/object-store.ts'
import type { Database } from '../platform/pg/database.ts'
import type { SealedEvent } from './event.ts'
import { NO_FILTER } from './filter/event-filter.ts'
import { eventsOf } from './hot/hot-page.ts'
import { type ChainRun, readEvents } from './reader.ts'
import { archiveRefusal, archiveRestoring } from './segment/archive-refusal.ts'
import type { ColdCache } from './segment/cold-cache.ts'
import { SegmentColdError } from './segment/cold-reader.ts'
import { requestRestores } from './segment/restore.ts'

export type ShortRunReads = {
  database: Database
  archive: ObjectStore
  cache: ColdCache
  /** Waits for a slot to use the database. */
  acquire: () => Promise<Disposable>
  acquireArchiveRead: () => Promise<Disposable>
  /** Limits the check of a segment that has to be restored. */
  checkMs: number
  signal: AbortSignal
}

const PAGE = { rows: 256, bytes: 1_024 * 1_024, mayBeLarge: true }

/**
 * Reads at most a few hundred events of a chain, hot or archived. Throws an error response if they can't be read
 * now, and requests the restore of a segment in a cold storage class.
 */
export async function readShortRun(deps: ShortRunReads, run: ChainRun): Promise<SealedEvent[]> {
  const events: SealedEvent[] = []
  try {
    for await (const page of readEvents(deps, run, NO_FILTER, () => PAGE)) {
      events.push(...eventsOf(page))
    }
  } catch (error) {
    if (!(error instanceof SegmentColdError)) throw archiveRefusal(error)
    const { archive, checkMs, signal } = deps
    await requestRestores(archive, [error.segment], { checkMs, signal }).catch((cause: unknown) => {
      throw archiveRefusal(cause)
    })
    throw archiveRestoring()
  }
  return events
}
