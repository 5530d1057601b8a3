import { listChainRun } from '../../../ledger/event-store.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Delivery } from './delivery-store.ts'
import { testBody, webhookBody } from '../send/webhook-body.ts'
import type { Webhook } from '../webhook.ts'

/** The body as sent, or null if its event is no longer in the table. */
export async function readRequestBody(
  db: Queryable,
  { companyId, workspaceId, projectId }: Webhook,
  { id, eventSeq, createdAt }: Delivery,
): Promise<string | null> {
  if (eventSeq === null) {
    const createdAtMs = createdAt.getTime()
    return testBody({ deliveryId: id, companyId, workspaceId, projectId, createdAtMs })
  }
  const { entries } = await listChainRun(db, { workspaceId, afterSeq: eventSeq - 1, limit: 1 })
  const [entry] = entries
  return entry?.event.seq === eventSeq ? webhookBody(entry.event) : null
}
