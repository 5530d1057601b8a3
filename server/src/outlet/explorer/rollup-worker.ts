import { advanceRollup, moveRollupFloor } from '../../ledger/rollup/rollup.ts'
import { listStaleRollups, listRolledUp } from '../../ledger/rollup/rollup-store.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { WorkspaceRuns } from '../../platform/scheduling/workspace-runs.ts'
import { hotSinceMsOf } from '../../tenancy/plans.ts'
import { RunSizes } from './histogram/run-sizes.ts'

const INTERVAL_MS = 4_000
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
const FLOOR_EVERY_MS = 600_000
const WORKSPACES_PER_PAGE = 100
/** Per workspace. The next rounds continue with the rest. */
const FLOOR_RUNS_MAX = 500
const RETRY_MS = 10_000

type WorkerDeps = { db: Queryable; clock: Clock; logger: Logger }
type RollupWorker = AsyncDisposable & { runNow: () => Promise<void> }

/** Adds new events to the roll-up, outside the transaction that stores them and at a limited rate. */
export function startRollupWorker(deps: WorkerDeps): RollupWorker {
  const { logger } = deps
  const runs = new SizedRuns(logger)
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

/** Runs that take as many events of their workspace as fit the time. */
class SizedRuns {
  readonly #sizes = new RunSizes()
  readonly #runs: WorkspaceRuns

  constructor(logger: Logger) {
    this.#runs = new WorkspaceRuns({ event: 'rollup.failed', retryMs: RETRY_MS, logger })
  }

  get waiting(): WorkspaceId[] {
    return this.#runs.waiting
  }

  /** Returns null if the work failed. Pauses afterwards. */
  async run<T extends { events: number } | null>(
    workspaceId: WorkspaceId,
    signal: AbortSignal,
    work: (runMax: number) => Promise<T>,
  ): Promise<T | null> {
    const sizedWork = () => work(this.#sizes.of(workspaceId))
    const ended = await this.#runs.run(workspaceId, sizedWork, signal)
    if (ended === null) this.#sizes.noteFailure(workspaceId)
    else if (ended.result) this.#sizes.noteRun(workspaceId, { ...ended.result, ...ended })
    return ended?.result ?? null
  }
}

async function advanceAll({ db }: WorkerDeps, runs: SizedRuns, signal: AbortSignal): Promise<void> {
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
  runs: SizedRuns,
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
