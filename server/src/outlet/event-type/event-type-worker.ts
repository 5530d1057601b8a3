import { setTimeout as wait } from 'node:timers/promises'
import { advanceEventTypes } from '../../ledger/event-type/event-types.ts'
import { listUnlearned } from '../../ledger/event-type/event-type-store.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'

const INTERVAL_MS = 2_000
/** Small runs wait, because a run costs a few milliseconds however few events it has. */
const BEHIND = { eventsMin: 5_000, waitMs: 10_000, limit: 100 }
/** Pauses three seconds per second of work, because requests have priority. */
const PAUSE_RATIO = 3

/** Learns event types from new events, outside the transaction that stores them and at a limited rate. */
export function startEventTypeWorker({ db, logger }: { db: Queryable; logger: Logger }): Loop {
  const run = (signal: AbortSignal) => learnAll({ db, logger }, signal)
  return new Loop({ name: 'event-types', everyMs: INTERVAL_MS, logger, run })
}

async function learnAll(
  { db, logger }: { db: Queryable; logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  // Lists them again after one run per company, so that a busy one doesn't starve the others.
  for (;;) {
    const behind = await listUnlearned(db, BEHIND)
    if (behind.length === 0) return
    for (const { workspaceId, companyId } of behind) {
      if (signal.aborted) return
      const startedAtMs = performance.now()
      const { outcome, missed } = await advanceEventTypes(db, workspaceId, { owner: companyId })
      if (missed > 0) logger.warn({ event: 'event-types.missed', workspaceId, events: missed })
      // Another node is at work. It would only do the same.
      if (outcome === 'overtaken') return
      const pauseMs = (performance.now() - startedAtMs) * PAUSE_RATIO
      // Shutdown aborts the pause, which needs no cleanup.
      await wait(pauseMs, undefined, { signal }).catch(() => {})
    }
  }
}
