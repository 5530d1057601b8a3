import type { Clock } from '../../../platform/time/clock.ts'
import type { Logger } from '../../../platform/logger.ts'
import { Loop } from '../../../platform/scheduling/loop.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { DAY_MS } from '../../../platform/time/time-units.ts'
import { WAIT_MS_MAX } from '../dispatch/retry-schedule.ts'
import {
  rescheduleDueBy,
  deleteEmptied,
  deleteEnded,
  listSweptWebhooks,
  type SweptWebhook,
} from './sweep-store.ts'

const INTERVAL_MS = 60_000
export const DELIVERY_KEPT_MS = 30 * DAY_MS
const WEBHOOKS_PER_PAGE = 100
const DELIVERIES_PER_STATEMENT_MAX = 1_000
/** Per run. Later runs delete the rest of a webhook's old deliveries. */
const STATEMENTS_PER_WEBHOOK_MAX = 300

/**
 * Deletes deliveries that ended 30 days ago, and everything left of deleted webhooks. Corrects times that were
 * set while the clock was ahead.
 */
export function startSweepWorker({
  db,
  clock,
  logger,
}: {
  db: Queryable
  clock: Clock
  logger: Logger
}): Loop {
  const run = async (signal: AbortSignal): Promise<void> => {
    const nowMs = clock()
    const before = new Date(nowMs - DELIVERY_KEPT_MS)
    const dueMax = new Date(nowMs + WAIT_MS_MAX)
    let after: SweptWebhook | null = null
    do {
      const page: SweptWebhook[] = await listSweptWebhooks(db, { after, limit: WEBHOOKS_PER_PAGE })
      for (const webhook of page) {
        if (signal.aborted) return
        await sweep(db, webhook, before)
        await rescheduleDueBy(db, webhook, { now: new Date(nowMs), dueMax })
      }
      after = page.at(-1) ?? null
    } while (after !== null)
  }
  return new Loop({ name: 'webhook-sweep', everyMs: INTERVAL_MS, logger, run })
}

async function sweep(db: Queryable, webhook: SweptWebhook, before: Date): Promise<void> {
  const limit = DELIVERIES_PER_STATEMENT_MAX
  for (let times = 0; times < STATEMENTS_PER_WEBHOOK_MAX; times += 1) {
    if ((await deleteEnded(db, webhook, { before, limit })) === 0) break
  }
  if (webhook.isDeleted) await deleteEmptied(db, webhook)
}
