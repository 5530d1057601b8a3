import type { Clock } from '../platform/clock.ts'
import type { Logger } from '../platform/logger.ts'
import { Loop } from '../platform/loop.ts'
import type { Queryable } from '../platform/pg.ts'
import { deleteExpiredLinks } from './one-time-link-store.ts'
import { deleteExpiredSessions } from './session-store.ts'

const TURN_MS = 60_000
const ROWS_PER_STATEMENT_MAX = 1_000
/** Of each kind; the rest goes in the next turns. */
const STATEMENTS_PER_TURN_MAX = 100

type SweepWorker = AsyncDisposable & { runNow: () => Promise<void> }

/** Removes sessions and one-time links that are over. Nobody gets in with them even before. */
export function startSignInSweepWorker({
  db,
  clock,
  logger,
}: {
  db: Queryable
  clock: Clock
  logger: Logger
}): SweepWorker {
  const limit = ROWS_PER_STATEMENT_MAX
  const run = async (signal: AbortSignal): Promise<void> => {
    const now = new Date(clock())
    await untilDone(signal, () => deleteExpiredSessions(db, { now, limit }))
    await untilDone(signal, () => deleteExpiredLinks(db, { now, limit }))
  }
  const loop = new Loop({ name: 'sign-in-sweep', everyMs: TURN_MS, logger, run })
  return { runNow: () => loop.runNow(), [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose]() }
}

async function untilDone(signal: AbortSignal, statement: () => Promise<number>): Promise<void> {
  for (let times = 0; times < STATEMENTS_PER_TURN_MAX && !signal.aborted; times += 1) {
    if ((await statement()) < ROWS_PER_STATEMENT_MAX) return
  }
}
