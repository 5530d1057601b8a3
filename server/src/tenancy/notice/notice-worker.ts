import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { repeatWhileFull } from '../../platform/pg/repeat-while-full.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { MINUTE_MS } from '../../platform/time/time-units.ts'
import { listExpiringKeys, listUsedReplacedKeys } from './key-notice-store.ts'
import { listNearLimits } from './limit-notice-store.ts'
import type { NoticeDraft, NoticeKind } from './notice.ts'
import {
  deleteExcessNotices,
  deleteForgottenCauses,
  deleteOldNotices,
  endOtherCauses,
  NOTICE_KEPT_MS,
  raiseNotices,
} from './notice-store.ts'

const INTERVAL_MS = MINUTE_MS
export const NOTICES_PER_COMPANY_MAX = 500
const ROWS_PER_STATEMENT_MAX = 500
/** Per step of a run. Later runs handle the rest. */
const STATEMENTS_PER_RUN_MAX = 100
/** The sweep reads the whole table. */
const RUNS_PER_SWEEP = 10

/** Lists all webhooks that are failing, or null if the worker stops meanwhile. */
type ListFailing = (
  db: Queryable,
  nowMs: number,
  signal: AbortSignal,
) => Promise<NoticeDraft[] | null>

type WorkerDeps = { db: Queryable; clock: Clock; logger: Logger; listFailingWebhooks: ListFailing }

/**
 * Creates notices about states that no request or other worker notices on its own, and deletes old notices.
 * Several nodes can run it at the same time: a cause has one notice, whichever node finds it.
 */
export function startNoticeWorker({ db, clock, logger, listFailingWebhooks }: WorkerDeps): Loop {
  let runs = 0
  const run = async (signal: AbortSignal): Promise<void> => {
    const steps = [
      () => raiseAboutKeys({ db, clock }, signal),
      () => raiseLasting('LIMIT_NEAR', () => listNearLimits(db, new Date(clock()))),
      () => raiseLasting('WEBHOOK_FAILING', () => listFailingWebhooks(db, clock(), signal)),
      ...(runs % RUNS_PER_SWEEP === 0 ? [() => deleteExpiredNotices({ db, clock }, signal)] : []),
    ]
    runs += 1
    // A step that fails doesn't keep the others from running.
    const failures: unknown[] = []
    for (const step of steps) {
      if (signal.aborted) return
      await step().catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }
  const raiseLasting = async (
    kind: NoticeKind,
    list: () => Promise<NoticeDraft[] | null>,
  ): Promise<void> => {
    const lasting = await list()
    if (lasting === null) return
    await raiseNotices(db, lasting, clock())
    await endOtherCauses(db, kind, lasting, clock())
  }
  return new Loop({ name: 'notice', everyMs: INTERVAL_MS, logger, run })
}

type Deps = Pick<WorkerDeps, 'db' | 'clock'>

async function raiseAboutKeys({ db, clock }: Deps, signal: AbortSignal): Promise<void> {
  const limit = ROWS_PER_STATEMENT_MAX
  const bounds = { limit, timesMax: STATEMENTS_PER_RUN_MAX, signal }
  for (const list of [listExpiringKeys, listUsedReplacedKeys]) {
    await repeatWhileFull(bounds, async () => {
      const drafts = await list(db, { now: new Date(clock()), limit })
      await raiseNotices(db, drafts, clock())
      return drafts.length
    })
  }
}

async function deleteExpiredNotices({ db, clock }: Deps, signal: AbortSignal): Promise<void> {
  const limit = ROWS_PER_STATEMENT_MAX
  const bounds = { limit, timesMax: STATEMENTS_PER_RUN_MAX, signal }
  const now = new Date(clock())
  const before = new Date(clock() - NOTICE_KEPT_MS)
  await repeatWhileFull(bounds, () => deleteOldNotices(db, { before, limit }))
  const keptMax = NOTICES_PER_COMPANY_MAX
  await repeatWhileFull(bounds, () => deleteExcessNotices(db, { keptMax, limit }))
  await repeatWhileFull(bounds, () => deleteForgottenCauses(db, { now, limit }))
}
