import type { Clock } from '../../platform/time/clock.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { failWaiting } from './delivery-queue-store.ts'
import { markWebhookEnabled, lockWebhook } from './webhook-store.ts'
import type { Webhook } from './webhook.ts'

const ENDED_PER_STATEMENT_MAX = 1_000

/**
 * Enables a webhook without sending the deliveries left over from when it was disabled: it first fails the
 * waiting ones in batches, one transaction each, and enables the webhook in the last. A disabled webhook gets
 * no new deliveries, so there is a last batch. Returns false if the webhook is gone. Each transaction starts
 * with `before`, which may lock the company: a company is always locked before its webhooks. The last one
 * ends with `alongside`.
 */
export async function failWaitingAndEnable(
  db: Queryable,
  { workspaceId, id }: Pick<Webhook, 'workspaceId' | 'id'>,
  clock: Clock,
  {
    before = async () => {},
    alongside = async () => {},
  }: Partial<Record<'before' | 'alongside', (tx: Queryable) => Promise<void>>> = {},
): Promise<boolean> {
  for (;;) {
    const state = await db.transaction().execute(async (tx) => {
      await before(tx)
      // Locks the webhook, so that a second caller can't fail deliveries created after the first enabled it.
      const webhook = await lockWebhook(tx, { workspaceId, id })
      if (!webhook) return 'gone'
      if (webhook.status === 'ENABLED') return 'enabled'
      const now = new Date(clock())
      const reason = webhook.disabledReason ?? 'The webhook was disabled.'
      const limit = ENDED_PER_STATEMENT_MAX
      const ended = await failWaiting(tx, { workspaceId, webhookId: id, reason, limit, now })
      if (ended === limit) return 'waiting'
      await markWebhookEnabled(tx, { workspaceId, id }, now)
      await alongside(tx)
      return 'enabled'
    })
    if (state !== 'waiting') return state === 'enabled'
  }
}
