import { setTimeout as wait } from 'node:timers/promises'
import { advanceSearchBlocks, BLOCK_EVENTS } from '../../ledger/search/search-blocks.ts'
import { listUncovered } from '../../ledger/search/search-block-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { isOutage, type Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'

const INTERVAL_MS = 2_000
const WORKSPACES_PER_ROUND_MAX = 100
/** Pauses three seconds per second of work, because requests have priority. */
const PAUSE_RATIO = 3
/** A workspace that failed waits this long, so that it doesn't hold up the others. */
const RETRY_MS = 60_000

type WorkerDeps = { db: Queryable; logger: Logger }

/** Puts new events into search blocks, outside the transaction that stores them and at a limited rate. */
export function startSearchBlockWorker(deps: WorkerDeps): Loop {
  const retryAtMs = new Map<WorkspaceId, number>()
  const run = (signal: AbortSignal) => coverAll(deps, retryAtMs, signal)
  return new Loop({ name: 'search-blocks', everyMs: INTERVAL_MS, logger: deps.logger, run })
}

async function coverAll(
  { db, logger }: WorkerDeps,
  retryAtMs: Map<WorkspaceId, number>,
  signal: AbortSignal,
): Promise<void> {
  for (const [workspaceId, atMs] of retryAtMs) {
    if (atMs <= performance.now()) retryAtMs.delete(workspaceId)
  }
  // Lists them again after one run per company, so that a busy one doesn't starve the others.
  for (;;) {
    const behind = await listUncovered(db, {
      eventsMin: BLOCK_EVENTS,
      except: [...retryAtMs.keys()],
      limit: WORKSPACES_PER_ROUND_MAX,
    })
    if (behind.length === 0) return
    for (const { workspaceId, companyId: owner } of behind) {
      if (signal.aborted) return
      const startedAtMs = performance.now()
      try {
        // If another node is at work, this one would only do the same.
        if ((await advanceSearchBlocks(db, workspaceId, { owner })) === 'overtaken') return
      } catch (error) {
        if (isOutage(error)) throw error
        logger.error({ event: 'search-blocks.failed', workspaceId, err: error })
        retryAtMs.set(workspaceId, performance.now() + RETRY_MS)
      }
      const pauseMs = (performance.now() - startedAtMs) * PAUSE_RATIO
      // Shutdown aborts the pause, which needs no cleanup.
      await wait(pauseMs, undefined, { signal }).catch(() => {})
    }
  }
}
