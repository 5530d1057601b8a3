import { setTimeout as wait } from 'node:timers/promises'
import { advanceEventTypes } from '../../ledger/event-type/event-types.ts'
import { listUnlearned } from '../../ledger/event-type/event-type-store.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { isOutage, type Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'

const INTERVAL_MS = 2_000
/** Small runs wait, because a run costs a few milliseconds however few events it has. */
const BEHIND = { eventsMin: 5_000, waitMs: 10_000, limit: 100 }
/** Pauses three seconds per second of work, because requests have priority. */
const PAUSE_RATIO = 3
/** A workspace that failed waits this long, so that it doesn't hold up the others. */
const RETRY_MS = 60_000

type WorkerDeps = { db: Queryable; logger: Logger }

/** Learns event types from new events, outside the transaction that stores them and at a limited rate. */
export function startEventTypeWorker(deps: WorkerDeps): Loop {
  const retryAtMs = new Map<WorkspaceId, number>()
  const run = (signal: AbortSignal) => learnAll(deps, retryAtMs, signal)
  return new Loop({ name: 'event-types', everyMs: INTERVAL_MS, logger: deps.logger, run })
}

async function learnAll(
  deps: WorkerDeps,
  retryAtMs: Map<WorkspaceId, number>,
  signal: AbortSignal,
): Promise<void> {
  for (const [workspaceId, atMs] of retryAtMs) {
    if (atMs <= performance.now()) retryAtMs.delete(workspaceId)
  }
  // Lists them again after one run per company, so that a busy one doesn't starve the others.
  for (;;) {
    const behind = await listUnlearned(deps.db, { ...BEHIND, except: [...retryAtMs.keys()] })
    if (behind.length === 0) return
    for (const work of behind) {
      if (signal.aborted) return
      const startedAtMs = performance.now()
      try {
        if (!(await learnOnce(deps, work))) return
      } catch (error) {
        if (isOutage(error)) throw error
        const { workspaceId } = work
        deps.logger.error({ event: 'event-types.failed', workspaceId, err: error })
        retryAtMs.set(workspaceId, performance.now() + RETRY_MS)
      }
      const pauseMs = (performance.now() - startedAtMs) * PAUSE_RATIO
      // Shutdown aborts the pause, which needs no cleanup.
      await wait(pauseMs, undefined, { signal }).catch(() => {})
    }
  }
}

/** Returns false if another node is at work. This one would only do the same. */
async function learnOnce(
  { db, logger }: WorkerDeps,
  { workspaceId, companyId }: { workspaceId: WorkspaceId; companyId: CompanyId },
): Promise<boolean> {
  const { outcome, missed } = await advanceEventTypes(db, workspaceId, { owner: companyId })
  if (missed > 0) logger.warn({ event: 'event-types.missed', workspaceId, events: missed })
  return outcome !== 'overtaken'
}
