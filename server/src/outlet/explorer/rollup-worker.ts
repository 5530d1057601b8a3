import { setTimeout as wait } from 'node:timers/promises'
import { advanceRollup, moveRollupFloor } from '../../ledger/rollup/rollup.ts'
import { listStaleRollups, listRolledUp } from '../../ledger/rollup/rollup-store.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { hotSinceMsOf } from '../../tenancy/plans.ts'

const INTERVAL_MS = 2_000
const EVENTS_PER_RUN_MAX = 50_000
/**
 * A run of 50,000 events costs the database about 15 µs per event, and a run of 200 about 60 µs, mostly for
 * values that occur only once in it. So small runs wait: a reader counts 1,000 events in a millisecond.
 */
const THRESHOLDS = [
  { eventsMin: 50_000, waitMs: 0 },
  { eventsMin: 1_000, waitMs: 10_000 },
  { eventsMin: 1, waitMs: 60_000 },
] as const
const WORKSPACES_PER_ROUND_MAX = 100
/** Pauses three seconds per second of work, because ingest has priority on the database. */
const PAUSE_RATIO = 3
const FLOOR_EVERY_MS = 600_000
const WORKSPACES_PER_PAGE = 100
/** Per workspace. The next rounds continue with the rest. */
const FLOOR_RUNS_MAX = 500

type RollupWorker = AsyncDisposable & { runNow: () => Promise<void> }

/** Adds new events to the roll-up, outside the transaction that stores them and at a limited rate. */
export function startRollupWorker({
  db,
  clock,
  logger,
}: {
  db: Queryable
  clock: Clock
  logger: Logger
}): RollupWorker {
  const advance = new Loop({
    name: 'rollup',
    everyMs: INTERVAL_MS,
    logger,
    run: (signal) => advanceAll(db, signal),
  })
  const floor = new Loop({
    name: 'rollup-floor',
    everyMs: FLOOR_EVERY_MS,
    logger,
    run: (signal) => moveFloors({ db, clock, logger }, signal),
  })
  return {
    runNow: async () => {
      await floor.runNow()
      await advance.runNow()
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([advance[Symbol.asyncDispose](), floor[Symbol.asyncDispose]()])
    },
  }
}

async function advanceAll(db: Queryable, signal: AbortSignal): Promise<void> {
  const limits = { thresholds: THRESHOLDS, limit: WORKSPACES_PER_ROUND_MAX }
  let isBehind = true
  // Lists them again each round, so that a chain that grows faster than we count doesn't starve the others.
  while (isBehind) {
    isBehind = false
    for (const workspaceId of await listStaleRollups(db, limits)) {
      if (signal.aborted) return
      const startedAtMs = performance.now()
      const advance = await advanceRollup(db, workspaceId, { runMax: EVENTS_PER_RUN_MAX })
      isBehind ||= advance?.isBehind === true
      await pause(performance.now() - startedAtMs, signal)
    }
  }
}

async function moveFloors(
  { db, clock, logger }: { db: Queryable; clock: Clock; logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  let after: WorkspaceId | null = null
  do {
    const page: Awaited<ReturnType<typeof listRolledUp>> = await listRolledUp(db, {
      after,
      limit: WORKSPACES_PER_PAGE,
    })
    for (const { workspaceId, plan } of page) {
      const hotSinceMs = hotSinceMsOf(plan, clock())
      for (let runs = 0; runs < FLOOR_RUNS_MAX; runs += 1) {
        if (signal.aborted) return
        const startedAtMs = performance.now()
        const options = { hotSinceMs, runMax: EVENTS_PER_RUN_MAX }
        const outcome = await moveRollupFloor(db, workspaceId, options)
        if (outcome === 'remade') logger.warn({ event: 'rollup.remade', workspaceId })
        await pause(performance.now() - startedAtMs, signal)
        if (outcome !== 'more') break
      }
    }
    after = page.at(-1)?.workspaceId ?? null
  } while (after !== null)
}

async function pause(workedMs: number, signal: AbortSignal): Promise<void> {
  // Shutdown aborts the pause, which needs no cleanup.
  await wait(workedMs * PAUSE_RATIO, undefined, { signal }).catch(() => {})
}
