import type { Clock } from '../../platform/time/clock.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Caller } from '../../tenancy/caller.ts'
import { failWaiting } from './dispatch/delivery-queue-store.ts'
import { lockWebhook, markWebhookEnabled } from './webhook-store.ts'
import type { Webhook } from './webhook.ts'

const ENDED_PER_STATEMENT_MAX = 1_000

/**
 * Enables a webhook without sending the deliveries left over from when it was disabled: it first fails the
 * waiting ones in batches, one transaction each, and enables the webhook in the last. A disabled webhook gets
 * no new deliveries, so there is a last batch. Returns false if the webhook is gone. Each transaction starts
 * with `lock`, because a company is always locked before its webhooks. The last one writes the audit entry.
 */
export async function failWaitingAndEnable(
  db: Queryable,
  { workspaceId, id }: Pick<Webhook, 'workspaceId' | 'id'>,
  clock: Clock,
  lock: Caller['lock'],
): Promise<boolean> {
  for (;;) {
    const state = await db.transaction().execute(async (tx) => {
      const write = await lock(tx)
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
      await write({ action: 'WEBHOOK_ENABLED', resource: { type: 'webhook', id } })
      return 'enabled'
    })
    if (state !== 'waiting') return state === 'enabled'
  }
}
