import { findSeqAt, readHead } from '../../ledger/event-store.ts'
import type { Clock } from '../../platform/clock.ts'
import { type Queryable, SQLSTATE, sqlStateOf } from '../../platform/pg.ts'
import { findReceivedAt, insertMissing, redeliverFailed } from './delivery-store.ts'
import type { Webhook } from './webhook.ts'

const SEQS_PER_PAGE = 500
/** Each event of a page gives at most one delivery. */
export const DELIVERIES_PER_CALL_MAX = 10_000
/** Also a window in which there is nothing to do has an end. */
const PAGES_PER_CALL_MAX = 200
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
): Promise<WindowResult> {
  const { workspaceId } = webhook
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const seqAt = (atMs: number) => findSeqAt(db, workspaceId, { atMs, headSeq })
  const endSeq = await seqAt(toMs)
  let seq = await seqAt(Math.max(fromMs, webhook.createdAt.getTime()))
  let redelivered = 0
  let made = 0
  for (let pages = 0; seq < endSeq; pages += 1) {
    const isFull = redelivered + made + SEQS_PER_PAGE > DELIVERIES_PER_CALL_MAX
    const seqs = { from: seq, to: Math.min(seq + SEQS_PER_PAGE, endSeq) - 1 }
    const count =
      isFull || pages === PAGES_PER_CALL_MAX ? null : await redeliverPage(db, webhook, seqs, clock)
    if (count === null) {
      const receivedAt = await findReceivedAt(db, workspaceId, seq)
      return { redelivered, made, continueFrom: receivedAt ?? new Date(fromMs) }
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
      const redelivered = await redeliverFailed(db, { ...place, limit: SEQS_PER_PAGE })
      return { redelivered, made }
    } catch (error) {
      if (sqlStateOf(error) !== SQLSTATE.UNIQUE_VIOLATION) throw error
    }
  }
  return null
}
