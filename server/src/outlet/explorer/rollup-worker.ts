import { setTimeout as wait } from 'node:timers/promises'
import { advanceRollup, moveRollupFloor } from '../../ledger/rollup/rollup.ts'
import { listStaleRollups, listRolledUp } from '../../ledger/rollup/rollup-store.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { isOutage, type Queryable } from '../../platform/pg/database.ts'
import { hotSinceMsOf } from '../../tenancy/plans.ts'
import { RunSizes } from './run-sizes.ts'

const INTERVAL_MS = 2_000
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
/** A workspace whose run failed waits this long, so that it doesn't hold up the others. */
const RETRY_MS = 10_000

type WorkerDeps = { db: Queryable; clock: Clock; logger: Logger }
type RollupWorker = AsyncDisposable & { runNow: () => Promise<void> }

/** Adds new events to the roll-up, outside the transaction that stores them and at a limited rate. */
export function startRollupWorker(deps: WorkerDeps): RollupWorker {
  const { logger } = deps
  const runs = new WorkspaceRuns(logger)
  const advance = new Loop({
    name: 'rollup',
    everyMs: INTERVAL_MS,
    logger,
    run: (signal) => advanceAll(deps, runs, signal),
  })
  const floor = new Loop({
    name: 'rollup-floor',
    everyMs: FLOOR_EVERY_MS,
    logger,
    run: (signal) => moveFloors(deps, runs, signal),
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

/** Runs the work of one workspace at a time. If it fails, only that workspace waits. */
class WorkspaceRuns {
  readonly #logger: Logger
  readonly #sizes = new RunSizes()
  readonly #retryAtMs = new Map<WorkspaceId, number>()

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** The workspaces whose last run failed a short time ago. */
  get waiting(): WorkspaceId[] {
    for (const [workspaceId, atMs] of this.#retryAtMs) {
      if (atMs <= performance.now()) this.#retryAtMs.delete(workspaceId)
    }
    return [...this.#retryAtMs.keys()]
  }

  /** Returns null if the work failed. Pauses afterwards. */
  async run<T extends { events: number } | null>(
    workspaceId: WorkspaceId,
    signal: AbortSignal,
    work: (runMax: number) => Promise<T>,
  ): Promise<T | null> {
    const startedAtMs = performance.now()
    try {
      const done = await work(this.#sizes.of(workspaceId))
      const tookMs = performance.now() - startedAtMs
      if (done) this.#sizes.noteRun(workspaceId, { events: done.events, tookMs })
      return done
    } catch (error) {
      if (isOutage(error)) throw error
      this.#logger.error({ event: 'rollup.failed', workspaceId, err: error })
      this.#sizes.noteFailure(workspaceId)
      this.#retryAtMs.set(workspaceId, performance.now() + RETRY_MS)
      return null
    } finally {
      await pause(performance.now() - startedAtMs, signal)
    }
  }
}

async function advanceAll(
  { db }: WorkerDeps,
  runs: WorkspaceRuns,
  signal: AbortSignal,
): Promise<void> {
  const limits = { thresholds: THRESHOLDS, limit: WORKSPACES_PER_ROUND_MAX }
  let isBehind = true
  // Lists them again each round, so that a chain that grows faster than we count doesn't starve the others.
  while (isBehind) {
    isBehind = false
    for (const workspaceId of await listStaleRollups(db, { ...limits, except: runs.waiting })) {
      if (signal.aborted) return
      const advance = await runs.run(workspaceId, signal, (runMax) =>
        advanceRollup(db, workspaceId, { runMax }),
      )
      isBehind ||= advance?.isBehind === true
    }
  }
}

async function moveFloors(
  { db, clock, logger }: WorkerDeps,
  runs: WorkspaceRuns,
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
      for (let times = 0; times < FLOOR_RUNS_MAX; times += 1) {
        if (signal.aborted) return
        const move = await runs.run(workspaceId, signal, (runMax) =>
          moveRollupFloor(db, workspaceId, { hotSinceMs, runMax }),
        )
        if (move?.outcome === 'remade') logger.warn({ event: 'rollup.remade', workspaceId })
        if (move?.outcome !== 'more') break
      }
    }
    after = page.at(-1)?.workspaceId ?? null
  } while (after !== null)
}

async function pause(workedMs: number, signal: AbortSignal): Promise<void> {
  // Shutdown aborts the pause, which needs no cleanup.
  await wait(workedMs * PAUSE_RATIO, undefined, { signal }).catch(() => {})
}
