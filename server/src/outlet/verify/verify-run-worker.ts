import { AssertionError } from 'node:assert/strict'
import { NoResultError } from 'kysely'
import { requestChainRestores } from '../../ledger/segment/restore.ts'
import { HOUR_MS } from '../../platform/time/time-units.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { FairSemaphore } from '../../platform/scheduling/fair-semaphore.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { type ObjectStore, stoppable } from '../../platform/object-store/object-store.ts'
import { type Database, type Queryable, sqlStateOf } from '../../platform/pg/database.ts'
import type { ServiceAudit } from '../../tenancy/caller.ts'
import { raiseNotices } from '../../tenancy/notice/notice-store.ts'
import { verdictNotices } from './verdict-notices.ts'
import { type HashConsumer, SegmentUnreadableError } from './verify-archive.ts'
import { compareWithCheckpoint, type ListSigners, type SignedState } from './verify-checkpoint.ts'
import { type ChainVerdict, verifyChain } from './verify-ledger.ts'
import {
  auditedOutcome,
  failureOf,
  outcomeOf,
  treeOutcomeOf,
  type VerifyOutcome,
} from './verify-outcome.ts'
import { verifyPeriod } from './verify-period.ts'
import type { VerifyRun } from './verify-run.ts'
import {
  claimVerifyRun,
  findLastVerdict,
  finishVerifyRun,
  updateVerifyProgress,
} from './verify-run-store.ts'
import { repeatVerification } from './verify-schedule-store.ts'

/** For runs that other nodes created or abandoned. Those of this node wake the worker. */
const POLL_INTERVAL_MS = 3_000
/** Much shorter than the 15 s after which another node takes over. */
const HEARTBEAT_INTERVAL_MS = 1_000
/** Each of a different company. A run that waits for its next step uses almost no memory. */
const RUNS_MAX = 20
/** Fewer than the permits below, so that a run that a member requested never waits for scheduled ones. */
const SCHEDULED_RUNS_MAX = 2
/** Scheduled runs share the CPU time of one owner. */
const SCHEDULE_OWNER = 'verify schedule'
/**
 * A permit is for one step of a run, which uses one of the node's 20 connections and has one archived file
 * in memory. A run releases its permit after each step, so a long run delays others by only one step.
 */
const SEMAPHORE_LIMITS = {
  permitsMax: 3,
  permitsPerCompanyMax: 1,
  waitingMax: RUNS_MAX,
  waitingPerCompanyMax: RUNS_MAX,
}
/** Most restores take 3 to 5 hours. */
const RESTORE_WAIT_MS = 6 * HOUR_MS
/** Small, so that requests don't wait long for the event loop between two reads. */
const EVENTS_PER_READ = 250

type WorkerDeps = Pick<Database, 'pool' | 'db'> & {
  archive: ObjectStore
  clock: Clock
  logger: Logger
  audit: ServiceAudit
  /** Null if nothing is signed. */
  signed: SignedTrees | null
}

export type SignedTrees = {
  listKeys: ListSigners
  /** Reads what was signed. Call it before the chain is read. */
  openTree: (archive: ObjectStore, workspaceId: WorkspaceId) => Promise<TreeComparison>
}

/** Gets the hashes of a chain, and says how the chain differs from what was signed. */
type TreeComparison = HashConsumer & {
  /** Null if nothing was signed. */
  signed: SignedState | null
  finish: () => Promise<string | null>
  /** For a check that reads only a part of the chain. */
  finishPart: () => Promise<string | null>
}

type VerifyWorker = AsyncDisposable & { wake: () => void }

/** A run on this node. `cancel` is aborted if the run was canceled. */
type ActiveRun = VerifyRun & { cancel: AbortController }

/** Runs the verifications that members and the schedule requested, for several companies in parallel. */
export function startVerifyWorker(deps: WorkerDeps): VerifyWorker {
  const { db, clock, logger } = deps
  const semaphore = new FairSemaphore(SEMAPHORE_LIMITS)
  const active = new Map<ActiveRun, Promise<void>>()
  const stop = new AbortController()
  let mayHaveMore = false

  const takeRuns = async (): Promise<void> => {
    do {
      mayHaveMore = false
      while (active.size < RUNS_MAX && !stop.signal.aborted) {
        const scheduled = [...active.keys()].filter(({ isScheduled }) => isScheduled)
        const mayBeScheduled = scheduled.length < SCHEDULED_RUNS_MAX
        const next = await claimVerifyRun(db, new Date(clock()), { mayBeScheduled })
        if (!next) break
        // If the process was suspended, the leases of its own runs may have expired. Taking one renews it.
        if (active.keys().some(({ id }) => id === next.id)) continue
        const run = { ...next, cancel: new AbortController() }
        active.set(run, work(run))
      }
    } while (mayHaveMore)
  }
  const work = async (run: ActiveRun): Promise<void> => {
    try {
      await verifyInSteps(deps, run, semaphore, stop.signal)
    } catch (error) {
      // The result was not stored, so a node starts the run again when its lease expires.
      logger.error({ event: 'loop.failed', loop: 'verify-run', err: error })
    }
    active.delete(run)
    wake()
  }
  const renewLeases = async (): Promise<void> => {
    const runs = [...active.keys()]
    if (runs.length === 0) return
    const running = await updateVerifyProgress(db, runs, new Date(clock()))
    for (const { id, cancel } of runs) if (!running.has(id)) cancel.abort()
  }
  const pollLoop = new Loop({
    name: 'verify-run',
    everyMs: POLL_INTERVAL_MS,
    logger,
    run: takeRuns,
  })
  const heartbeatLoop = new Loop({
    name: 'verify-beat',
    everyMs: HEARTBEAT_INTERVAL_MS,
    logger,
    run: renewLeases,
  })
  const wake = (): void => {
    if (stop.signal.aborted) return
    // If a search is in progress, it may have missed a run that can start now.
    mayHaveMore = true
    void pollLoop.runNow()
  }
  const end = async (): Promise<void> => {
    stop.abort()
    await pollLoop[Symbol.asyncDispose]()
    await Promise.all(active.values())
    await heartbeatLoop[Symbol.asyncDispose]()
  }
  return { wake, [Symbol.asyncDispose]: end }
}

/** Verifies a chain, and releases its permit to other runs after each step. */
async function verifyInSteps(
  deps: WorkerDeps,
  run: ActiveRun,
  semaphore: FairSemaphore,
  stop: AbortSignal,
): Promise<void> {
  const { archive } = deps
  const signal = AbortSignal.any([stop, run.cancel.signal])
  let permit: Disposable | null = null
  const releasePermit = (): void => {
    permit?.[Symbol.dispose]()
    permit = null
  }
  const pause = async (): Promise<void> => {
    releasePermit()
    permit = await semaphore.take(run.companyId, signal)
  }
  let outcome: VerifyOutcome
  try {
    await pause()
    outcome = await verifyRun({ ...deps, archive: stoppable(archive, signal) }, run, pause)
  } catch (error) {
    // When this node stops, the run stays open, and another node starts it again.
    if (signal.aborted) return
    outcome = await failureAfter(deps, run, error)
  } finally {
    releasePermit()
  }
  await finishRun(deps, run, outcome)
}

/** If files of the archive must be restored first, requests that. */
async function failureAfter(
  { db, archive, logger }: WorkerDeps,
  { workspaceId, period }: VerifyRun,
  error: unknown,
): Promise<VerifyOutcome> {
  if (!(error instanceof SegmentUnreadableError) || !error.isCold) {
    logger.error({ event: 'verify.failed', workspaceId, err: error })
    return failureOf(error)
  }
  try {
    await requestChainRestores(db, archive, error.segment, period?.to.getTime())
    const { objectKey } = error.segment
    logger.info({ event: 'verify.waiting', workspaceId, objectKey })
    return failureOf(error)
  } catch (cause) {
    logger.error({ event: 'verify.failed', workspaceId, err: cause })
    return failureOf(cause)
  }
}

async function verifyRun(
  { pool, db, archive, signed }: WorkerDeps,
  run: ActiveRun,
  pause: () => Promise<void>,
): Promise<VerifyOutcome> {
  const { workspaceId, companyId, period } = run
  const options = {
    eventsPerRead: EVENTS_PER_READ,
    onProgress: (events: number) => (run.checked = events),
    onTotal: (events: number) => (run.total = events),
    pause,
    // Not the company itself, so that the run doesn't use up the CPU share of its requests.
    owner: run.isScheduled ? SCHEDULE_OWNER : `verify ${companyId}`,
  }
  const tree = signed && (await signed.openTree(archive, workspaceId))
  const verdict = period
    ? await verifyPeriod({ pool, db }, archive, { workspaceId, period }, options)
    : wholeChain(
        await verifyChain({ pool, db }, archive, workspaceId, {
          ...options,
          ...(tree && { hashes: tree }),
        }),
      )
  const outcome = outcomeOf(verdict, { isPeriod: period !== null })
  if (!verdict.ok) return outcome
  const { events, range, end } = verdict
  if (signed === null || tree === null) return { ...outcome, covered: { range, checkpoint: null } }
  const compared = await compareWithCheckpoint(
    { db, archive, listSigners: signed.listKeys },
    {
      workspaceId,
      firstSeq: range?.firstSeq ?? end.seq,
      lastSeq: end.seq,
      lastHash: end.hash,
    },
    // The whole chain is compared with it below, even if there are no tiles.
    period && tree.signed,
  )
  if (!compared.ok) return outcomeOf({ workspaceId, events, id: null, ...compared })
  // What is left of a chain whose end was cut off is in the signed tree too.
  const problem = await (period ? tree.finishPart() : tree.finish())
  if (problem !== null) return treeOutcomeOf(events, problem)
  return { ...outcome, covered: { range, checkpoint: range && compared.checkpoint } }
}

/** Its last hash is read from the database when it is compared. */
function wholeChain(verdict: ChainVerdict) {
  if (!verdict.ok) return verdict
  const { events } = verdict
  const range = events === 0 ? null : { firstSeq: 1, lastSeq: events }
  return { ...verdict, range, end: { seq: events, hash: null } }
}

/**
 * Stores the result together with its audit entry. A scheduled run that holds has none, because that would add one
 * entry per chain and day. If the company's own chain is too damaged for an entry, the member still gets the
 * result. After any other error, the run stays open, and a node restarts it.
 */
async function finishRun(
  { db, clock, logger, audit }: WorkerDeps,
  run: VerifyRun,
  outcome: VerifyOutcome,
): Promise<void> {
  const now = new Date(clock())
  const finish = async (trx: Queryable): Promise<boolean> => {
    const cause = run.isScheduled ? await streakOf(trx, run) : run.id
    if (!(await finishVerifyRun(trx, run, outcome, now))) return false
    await raiseNotices(trx, verdictNotices(run, outcome, cause), now.getTime())
    if (run.isScheduled && outcome.isRestoring) {
      await repeatVerification(trx, run.workspaceId, new Date(now.getTime() + RESTORE_WAIT_MS))
    }
    return true
  }
  try {
    await db.transaction().execute(async (trx) => {
      if (!(await finish(trx)) || (run.isScheduled && outcome.status === 'HOLDS')) return
      const metadata = { runId: run.id, ...auditedOutcome(outcome) }
      const resource = { type: 'workspace', id: run.workspaceId }
      await audit(trx, run.companyId, [{ action: 'VERIFY_FINISHED', resource, metadata }])
    })
  } catch (error) {
    if (!isDamage(error)) throw error
    logger.error({ event: 'verify.not-audited', companyId: run.companyId, err: error })
    await db.transaction().execute(finish)
  }
}

/** Consecutive scheduled runs that fail have the same cause, until a run reaches a verdict. */
async function streakOf(trx: Queryable, { workspaceId }: VerifyRun): Promise<string> {
  return `after ${(await findLastVerdict(trx, workspaceId)) ?? 'no verdict'}`
}

/**
 * Whether a chain has no valid head or workspace, or its next event contradicts stored ones: SQLSTATE classes
 * 22 (data), 23 (constraints) and XX (damaged files).
 */
function isDamage(error: unknown): boolean {
  if (error instanceof AssertionError || error instanceof NoResultError) return true
  return /^(22|23|XX)/.test(sqlStateOf(error) ?? '')
}
