import type { Clock } from '../../platform/clock.ts'
import type { Queryable } from '../../platform/pg.ts'
import { endWaiting } from './delivery-queue-store.ts'
import { enableWebhook, lockWebhook } from './webhook-store.ts'
import type { Webhook } from './webhook.ts'

const ENDED_PER_STATEMENT_MAX = 1_000

/**
 * Enables a webhook without a flood of what was left over when it was disabled: first everything that
 * still waits is ended, some at a time, and the turn that finds no more enables it. A disabled webhook
 * gets no new deliveries, so there is a last turn. Returns false when the webhook is gone. Each turn
 * begins with `before`, which may lock the company: a company is always locked before its webhooks. The
 * last one ends with `alongside`.
 */
export async function endWaitingAndEnable(
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
      // Under the lock, so that a second caller cannot end what came after the first enabled it.
      const webhook = await lockWebhook(tx, { workspaceId, id })
      if (!webhook) return 'gone'
      if (webhook.status === 'ENABLED') return 'enabled'
      const now = new Date(clock())
      const reason = webhook.disabledReason ?? 'The webhook was disabled.'
      const limit = ENDED_PER_STATEMENT_MAX
      const ended = await endWaiting(tx, { workspaceId, webhookId: id, reason, limit, now })
      if (ended === limit) return 'waiting'
      await enableWebhook(tx, { workspaceId, id }, now)
      await alongside(tx)
      return 'enabled'
    })
    if (state !== 'waiting') return state === 'enabled'
  }
}
