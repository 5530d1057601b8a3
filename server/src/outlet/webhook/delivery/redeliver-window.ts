import { findEndSeq, findSeqAt } from '../../../ledger/chain-search.ts'
import { readHead } from '../../../ledger/event-store.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import { idTimeMs } from '../../../platform/id.ts'
import { type Queryable, SQLSTATE, sqlStateOf } from '../../../platform/pg/database.ts'
import { findEventFrom, insertMissing, redeliverFailed } from './delivery-store.ts'
import type { Webhook } from '../webhook.ts'

/** Checked before each page, in which each event results in at most one delivery. */
const DELIVERIES_PER_CALL_MAX = 10_000
/** A call ends after this many pages even if it had nothing to send. */
const LIMITS = { seqsPerPage: 500, pagesMax: 200 }
const TRIES_MAX = 3

/** When events were received: `fromMs` inclusive, `toMs` exclusive. */
export type TimeWindow = { fromMs: number; toMs: number }

export type WindowResult = {
  /** Failed deliveries that are sent again. */
  redelivered: number
  /** New deliveries of events that had none. */
  made: number
  /** Where the next call must start. Null if the window is complete. */
  continueFrom: Date | null
}

/**
 * Sends failed deliveries of a window again and creates missing ones, page by page along the chain. Skips
 * events from before the webhook was created.
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
    // this call continues a bit longer. Otherwise, the next call would repeat it.
    const continueFrom = isFull || pages >= pagesMax ? await continueAt(seq) : null
    if (continueFrom) return { redelivered, made, continueFrom }
    const seqs = { from: seq, to: Math.min(seq + seqsPerPage, endSeq) - 1 }
    const count = await redeliverPage(db, webhook, seqs, clock)
    if (count === null) {
      // The next call retries this page.
      return { redelivered, made, continueFrom: (await continueAt(seq)) ?? new Date(fromMs) }
    }
    redelivered += count.redelivered
    made += count.made
    seq = seqs.to + 1
  }
  return { redelivered, made, continueFrom: null }
}

/** Returns null if fan-out was faster each time. The next call then handles the page. */
async function redeliverPage(
  db: Queryable,
  { workspaceId, id: webhookId, projectId, filter }: Webhook,
  seqs: { from: number; to: number },
  clock: Clock,
): Promise<{ redelivered: number; made: number } | null> {
  const target = { workspaceId, webhookId, seqs, now: new Date(clock()) }
  for (let times = 0; times < TRIES_MAX; times += 1) {
    try {
      // Creates missing ones first: if that fails, nothing has changed.
      const made = await insertMissing(db, { ...target, selection: { projectId, filter } })
      const redelivered = await redeliverFailed(db, { ...target, limit: LIMITS.seqsPerPage })
      return { redelivered, made }
    } catch (error) {
      if (sqlStateOf(error) !== SQLSTATE.UNIQUE_VIOLATION) throw error
    }
  }
  return null
}
