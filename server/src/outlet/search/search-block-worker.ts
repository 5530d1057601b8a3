import { advanceSearchBlocks, BLOCK_EVENTS } from '../../ledger/search/search-blocks.ts'
import { listUncovered } from '../../ledger/search/search-block-store.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { WorkspaceRuns } from '../../platform/scheduling/workspace-runs.ts'

const INTERVAL_MS = 4_000
const BEHIND = { eventsMin: BLOCK_EVENTS, limit: 100 }
const RETRY_MS = 60_000

/** Puts new events into search blocks, outside the transaction that stores them and at a limited rate. */
export function startSearchBlockWorker({ db, logger }: { db: Queryable; logger: Logger }): Loop {
  const runs = new WorkspaceRuns({ event: 'search-blocks.failed', retryMs: RETRY_MS, logger })
  return new Loop({
    name: 'search-blocks',
    everyMs: INTERVAL_MS,
    logger,
    run: (signal) =>
      runs.runAll(
        (except) => listUncovered(db, { ...BEHIND, except }),
        ({ workspaceId, companyId: owner }) => advanceSearchBlocks(db, workspaceId, { owner }),
        signal,
      ),
  })
}
