import { setTimeout as delay } from 'node:timers/promises'
import type { SoakContext } from './soak-context.ts'
import { deliveryIdEnd, type SoakWebhook } from './soak-receivers.ts'

const POLL_MS = 500
const ROWS_PER_QUERY = 20_000

type DeliveryRow = { id: string; eventId: string; status: string; sequence: number }
type WebhookRow = { status: string; seenSeq: number; headSeq: number; lastSequence: number }

/** Makes every receiver accept immediately, and waits until no delivery is due or time is up. */
export async function drainDeliveries(
  { receivers, service, tally }: SoakContext,
  drainMsMax: number,
): Promise<void> {
  receivers.drain()
  const giveUpAtMs = performance.now() + drainMsMax
  for (;;) {
    const [row] = await service.query<{ open: number }>(
      `select (select count(*) from webhook_delivery
                where status in ('PENDING', 'SENDING')
                   or (status = 'RETRY_SCHEDULED' and due_at <= now()))::int
            + (select coalesce(sum(h.seq - w.seen_seq), 0)
                 from webhook w join chain_head h using (workspace_id)
                where w.status = 'ENABLED')::int as open`,
    )
    if (row?.open === 0) return
    if (performance.now() > giveUpAtMs) {
      tally.count('delivery', 'open after the drain', row?.open)
      return
    }
    await delay(POLL_MS)
  }
}

/**
 * Checks that every event of a webhook's workspace has one delivery that arrived or is still due, unless
 * the webhook hasn't reached it yet, and that the delivery sequence has no gaps.
 */
export async function checkDeliveries(soak: SoakContext): Promise<void> {
  for (const webhook of soak.receivers.webhooks) await checkWebhook(soak, webhook)
}

async function checkWebhook(soak: SoakContext, webhook: SoakWebhook): Promise<void> {
  const { book, service, tally, verdicts } = soak
  const { workspace, arrivals, behavior } = webhook
  const name = `${behavior} webhook ${webhook.id}`
  const [state] = await service.query<WebhookRow>(
    `select w.status, w.seen_seq::int as "seenSeq", h.seq::int as "headSeq",
            w.last_sequence::int as "lastSequence"
       from webhook w join chain_head h using (workspace_id)
      where w.workspace_id = $1 and w.id = $2`,
    [workspace.id, webhook.id],
  )
  verdicts.check('deliveries', state?.status === 'ENABLED', () => `${name} is ${state?.status}`)
  const numberOf = new Map<string, number>()
  for (let n = 0; n < book.count; n += 1) {
    const id = book.idOf(n)
    if (id !== undefined && book.workspaceOf(n) === workspace.index) numberOf.set(id, n)
  }
  let rows = 0
  let lastSequence = 0
  for await (const row of readDeliveries(soak, webhook)) {
    rows += 1
    const isNext = row.sequence === lastSequence + 1
    verdicts.check('deliveries', isNext, () => `${name}: ${row.sequence} after ${lastSequence}`)
    lastSequence = row.sequence
    const n = numberOf.get(row.eventId)
    // The id of an unacknowledged event is unknown, but its delivery is still valid.
    if (n === undefined) continue
    numberOf.delete(row.eventId)
    const hasArrived = arrivals[n] === deliveryIdEnd(row.id)
    const isDue = ['PENDING', 'SENDING', 'RETRY_SCHEDULED'].includes(row.status)
    const describe = () => `${name}: delivery ${row.id} is ${row.status}, arrived: ${hasArrived}`
    verdicts.check('deliveries', hasArrived || isDue, describe)
    if (!hasArrived) tally.count('delivery', 'still due')
  }
  const unseen = (state?.headSeq ?? 0) - (state?.seenSeq ?? 0)
  const isAll = rows === state?.seenSeq && numberOf.size <= unseen
  const describe = () =>
    `${name}: ${rows} deliveries of ${state?.seenSeq} events, ${numberOf.size} without one`
  verdicts.check('deliveries', isAll, describe)
  if (unseen > 0) tally.count('delivery', 'not yet created', unseen)
}

async function* readDeliveries(
  { service }: SoakContext,
  { id, workspace }: SoakWebhook,
): AsyncGenerator<DeliveryRow> {
  let after = 0
  for (;;) {
    const rows = await service.query<DeliveryRow>(
      `select id, event_id as "eventId", status, sequence::int as sequence
         from webhook_delivery
        where workspace_id = $1 and webhook_id = $2 and sequence > $3
        order by sequence limit ${ROWS_PER_QUERY}`,
      [workspace.id, id, after],
    )
    yield* rows
    if (rows.length < ROWS_PER_QUERY) return
    after = rows.at(-1)?.sequence ?? after
  }
}
