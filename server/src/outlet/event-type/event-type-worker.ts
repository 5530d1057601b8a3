import { advanceEventTypes } from '../../ledger/event-type/event-types.ts'
import { listUnlearned } from '../../ledger/event-type/event-type-store.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { WorkspaceRuns } from '../../platform/scheduling/workspace-runs.ts'

const INTERVAL_MS = 4_000
/** Small runs wait, because a run costs a few milliseconds however few events it has. */
const BEHIND = { eventsMin: 5_000, waitMs: 10_000, limit: 100 }
const RETRY_MS = 60_000

type WorkerDeps = { db: Queryable; logger: Logger }
type Unlearned = Awaited<ReturnType<typeof listUnlearned>>[number]

/** Learns event types from new events, outside the transaction that stores them and at a limited rate. */
export function startEventTypeWorker({ db, logger }: WorkerDeps): Loop {
  const runs = new WorkspaceRuns({ event: 'event-types.failed', retryMs: RETRY_MS, logger })
  const learn = async ({ workspaceId, companyId: owner }: Unlearned) => {
    const { outcome, missed } = await advanceEventTypes(db, workspaceId, { owner })
    if (missed > 0) logger.warn({ event: 'event-types.missed', workspaceId, events: missed })
    return outcome
  }
  return new Loop({
    name: 'event-types',
    everyMs: INTERVAL_MS,
    logger,
    run: (signal) =>
      runs.runAll((except) => listUnlearned(db, { ...BEHIND, except }), learn, signal),
  })
}
