import { findEndSeq, findSeqAt } from '../../ledger/chain-search.ts'
import { readHead } from '../../ledger/event-store.ts'
import type { Clock } from '../../platform/clock.ts'
import { idTimeMs } from '../../platform/id.ts'
import { type Queryable, SQLSTATE, sqlStateOf } from '../../platform/pg.ts'
import { findEventFrom, insertMissing, redeliverFailed } from './delivery-store.ts'
import type { Webhook } from './webhook.ts'

/** Each event of a page gives at most one delivery. */
export const DELIVERIES_PER_CALL_MAX = 10_000
/** A call ends after this many pages even if it had nothing to send. */
const LIMITS = { seqsPerPage: 500, pagesMax: 200 }
const TRIES_MAX = 3

/** When events were received: `fromMs` inclusive, `toMs` exclusive. */
export type TimeWindow = { fromMs: number; toMs: number }

export type WindowResult = {
  /** Failed ones that are sent again. */
  redelivered: number
  /** Those of events that came while the webhook was disabled. */
  made: number
  /** Where the next call begins; null when the window is done. */
  continueFrom: Date | null
}

/**
 * Sends again what failed of a window, and makes the deliveries that are missing, page by page along
 * the chain. Events from before the webhook was made are not its own.
 */
export async function redeliverWindow(
  db: Queryable,
  webhook: Webhook,
  { fromMs, toMs }: TimeWindow,
  clock: Clock,
  { seqsPerPage, pagesMax } = LIMITS,
): Promise<WindowResult> {
  const { workspaceId } = webhook
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const seqAt = (atMs: number) => findSeqAt(db, workspaceId, { atMs, headSeq })
  const endSeq = await findEndSeq(db, workspaceId, { toMs, headSeq })
  const startSeq = await seqAt(Math.max(fromMs, webhook.createdAt.getTime()))
  /** Null if a call from that time would get no further than this one, or have no window. */
  const continueAt = async (seq: number): Promise<Date | null> => {
    const event = await findEventFrom(db, workspaceId, { seq, endSeq })
    if (!event) return null
    const atMs = idTimeMs(event.id)
    return atMs < toMs && (await seqAt(atMs)) > startSeq ? new Date(atMs) : null
  }
  let seq = startSeq
  let redelivered = 0
  let made = 0
  for (let pages = 0; seq < endSeq; pages += 1) {
    const isFull = redelivered + made + seqsPerPage > DELIVERIES_PER_CALL_MAX
    // If all ids since the start have the same time, because of a burst or a clock that was set back,
    // the call goes on a bit longer. Otherwise the next call would repeat it.
    const continueFrom = isFull || pages >= pagesMax ? await continueAt(seq) : null
    if (continueFrom) return { redelivered, made, continueFrom }
    const seqs = { from: seq, to: Math.min(seq + seqsPerPage, endSeq) - 1 }
    const count = await redeliverPage(db, webhook, seqs, clock)
    if (count === null) {
      // The next call tries this page again.
      return { redelivered, made, continueFrom: (await continueAt(seq)) ?? new Date(fromMs) }
    }
    redelivered += count.redelivered
    made += count.made
    seq = seqs.to + 1
  }
  return { redelivered, made, continueFrom: null }
}

/** Null when fan-out was quicker each time: the page is left to the next call. */
async function redeliverPage(
  db: Queryable,
  { workspaceId, id: webhookId, projectId }: Webhook,
  seqs: { from: number; to: number },
  clock: Clock,
): Promise<{ redelivered: number; made: number } | null> {
  const place = { workspaceId, webhookId, seqs, now: new Date(clock()) }
  for (let times = 0; times < TRIES_MAX; times += 1) {
    try {
      // Made ones first: what fails here has changed nothing.
      const made = await insertMissing(db, { ...place, projectId })
      const redelivered = await redeliverFailed(db, { ...place, limit: LIMITS.seqsPerPage })
      return { redelivered, made }
    } catch (error) {
      if (sqlStateOf(error) !== SQLSTATE.UNIQUE_VIOLATION) throw error
    }
  }
  return null
}
