import type { Clock } from '../../platform/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/loop.ts'
import { type ObjectStore, stoppable } from '../../platform/object-store.ts'
import type { Queryable } from '../../platform/pg.ts'
import { SegmentUnreadableError } from './verify-archive.ts'
import { type ChainVerdict, verifyChain } from './verify-ledger.ts'
import type { VerifyRun } from './verify-run.ts'
import {
  endVerifyRun,
  noteVerifyProgress,
  takeVerifyRun,
  type VerifyEnd,
} from './verify-run-store.ts'

const TURN_MS = 1_000
/** Much shorter than the time after which another node takes over. */
const BEAT_EVERY_MS = 1_000
/** Few at a time: whoever else needs this node has its turn between two reads. */
const EVENTS_PER_READ = 250

type WorkerDeps = { db: Queryable; store: ObjectStore; clock: Clock; logger: Logger }

type VerifyWorker = AsyncDisposable & { wake: () => void }

/** Works on the runs that people ask for, one at a time, and tells how far each is. */
export function startVerifyWorker(deps: WorkerDeps): VerifyWorker {
  const run = async (signal: AbortSignal): Promise<void> => {
    for (;;) {
      const next = signal.aborted ? null : await takeVerifyRun(deps.db, new Date(deps.clock()))
      if (!next) return
      await work(deps, next, signal)
    }
  }
  const loop = new Loop({ name: 'verify-run', everyMs: TURN_MS, logger: deps.logger, run })
  return {
    wake: () => void loop.runNow(),
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}

async function work(deps: WorkerDeps, run: VerifyRun, stop: AbortSignal): Promise<void> {
  const { db, store, clock, logger } = deps
  const canceled = new AbortController()
  let checked = 0
  const beat = async (): Promise<void> => {
    const isRunning = await noteVerifyProgress(db, run, { checked, now: new Date(clock()) })
    if (!isRunning) canceled.abort(new Error('the run was canceled'))
  }
  const beats = new Loop({ name: 'verify-beat', everyMs: BEAT_EVERY_MS, logger, run: beat })
  try {
    const verdict = await verifyChain(db, stoppable(store, stop), run.workspaceId, {
      eventsPerRead: EVENTS_PER_READ,
      onProgress: (events) => (checked = events),
      signal: AbortSignal.any([stop, canceled.signal]),
    })
    await endVerifyRun(db, run, endOf(verdict), new Date(clock()))
  } catch (error) {
    // A node that stops leaves the run as it is, and another begins it again.
    if (stop.aborted || canceled.signal.aborted) return
    logger.error({ event: 'verify.failed', workspaceId: run.workspaceId, err: error })
    await endVerifyRun(db, run, failureOf(error), new Date(clock()))
  } finally {
    await beats[Symbol.asyncDispose]()
  }
}

function failureOf(error: unknown): VerifyEnd {
  const verdict =
    error instanceof SegmentUnreadableError
      ? `The chain could not be checked: the archive can't be read from event ${error.seq} on. Start the run again, or ask the operator to check the archive.`
      : 'The run could not be finished, for a reason that is not the chain. Start it again.'
  return { status: 'FAILED', checked: null, verdict, badSeq: null, badEventId: null }
}

function endOf(verdict: ChainVerdict): VerifyEnd {
  const { events } = verdict
  if (verdict.ok) {
    const sentence =
      events === 0
        ? 'There are no events yet, and the chain is as empty as it says.'
        : `All ${events.toLocaleString('en')} events hold: every hash was recomputed, none is missing and none was changed.`
    return { status: 'HOLDS', checked: events, verdict: sentence, badSeq: null, badEventId: null }
  }
  return {
    status: 'BROKEN',
    checked: events,
    verdict: `The chain does not hold at event ${verdict.seq}: ${verdict.problem}.`,
    badSeq: verdict.seq,
    badEventId: verdict.id,
  }
}
