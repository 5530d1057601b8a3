import { ApiError } from '../../../errors.ts'
import { newId, parseId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { type Caller, changeAs } from '../../../tenancy/caller.ts'
import { findDelivery, insertTest, OPEN_PER_WEBHOOK_MAX, redeliver } from './delivery-store.ts'
import type { DeliveryId } from './delivery.ts'
import { redeliverWindow, type TimeWindow, type WindowResult } from './redeliver-window.ts'
import {
  readOpenRoom,
  type RetryableStatus,
  type RetryScope,
  type RetryStep,
  retryStep,
} from './retry-store.ts'
import { getWebhook, type WebhookActionDeps, webhookResource } from '../webhook-actions.ts'
import { lockWebhook, type WebhookWithSecrets } from '../webhook-store.ts'
import type { Webhook } from '../webhook.ts'

/* Deliveries that a caller requests, for keys and members alike. */

type StoredDelivery = NonNullable<Awaited<ReturnType<typeof findDelivery>>>
type DeliveryPath = { webhookId: string; deliveryId: string }

export async function getDelivery(
  { db }: { db: Queryable },
  caller: Pick<Caller, 'companyId' | 'canSeeWorkspace'>,
  path: DeliveryPath,
): Promise<{ webhook: WebhookWithSecrets; delivery: StoredDelivery }> {
  const webhook = await getWebhook({ db }, caller, path.webhookId)
  const deliveryId: DeliveryId | null = parseId(path.deliveryId)
  const target = { workspaceId: webhook.workspaceId, webhookId: webhook.id }
  const delivery = deliveryId && (await findDelivery(db, { ...target, deliveryId }))
  if (!delivery) throw new ApiError('not_found')
  return { webhook, delivery }
}

export async function sendTest(deps: WebhookActionDeps, caller: Caller, webhookId: string) {
  const webhook = await getWebhook(deps, caller, webhookId)
  const receipt = await changeAs(caller, deps.db, async (trx, record) => {
    const nowMs = deps.clock()
    const id = newId<'delivery'>(nowMs)
    const target = { workspaceId: webhook.workspaceId, webhookId: webhook.id }
    const sequence = await insertTest(trx, { ...target, id, now: new Date(nowMs) })
    if (sequence === null) throw await testRefusal(trx, webhook)
    const metadata = { deliveryId: id }
    record({ action: 'WEBHOOK_TESTED', resource: webhookResource(webhook), metadata })
    return { deliveryId: id, sequence }
  })
  deps.wakeDispatcher()
  return receipt
}

async function testRefusal(trx: Queryable, webhook: Webhook): Promise<ApiError> {
  const current = await lockWebhook(trx, webhook)
  if (!current) return new ApiError('not_found')
  if (current.status === 'DISABLED') return webhookDisabledError()
  return backlogFullError('Send the test')
}

function backlogFullError(action: string): ApiError {
  return new ApiError('conflict', {
    message: `This webhook has reached its limit of ${OPEN_PER_WEBHOOK_MAX} pending deliveries. ${action} after some of them have been delivered.`,
  })
}

/** Returns the delivery, which will be sent again. */
export async function resendDelivery(
  deps: WebhookActionDeps,
  caller: Caller,
  path: DeliveryPath,
): Promise<StoredDelivery> {
  const { webhook, delivery } = await getDelivery(deps, caller, path)
  await changeAs(caller, deps.db, async (trx, record) => {
    const { workspaceId, id: webhookId } = webhook
    const { id: deliveryId } = delivery
    const now = new Date(deps.clock())
    const isResent = await redeliver(trx, { workspaceId, webhookId, deliveryId, now })
    // A delivery is always locked before its webhook, as when an attempt ends.
    await lockEnabled(trx, webhook)
    if (!isResent) {
      throw new ApiError('conflict', {
        message: "The delivery can't be resent. It is still pending, or its event is archived.",
      })
    }
    const metadata = { deliveryId }
    record({ action: 'WEBHOOK_REDELIVERED', resource: webhookResource(webhook), metadata })
  })
  const again = await getDelivery(deps, caller, path)
  deps.wakeDispatcher()
  return again.delivery
}

/** Resends events that the receiver missed. `from` and `to` are the window as the caller sent it. */
export async function resendWindow(
  deps: WebhookActionDeps,
  caller: Caller,
  webhookId: string,
  { window, from, to }: { window: TimeWindow; from: string; to: string },
): Promise<WindowResult> {
  const found = await getWebhook(deps, caller, webhookId)
  // Write the entry first. Redelivery commits page by page, and no page may go unrecorded.
  const webhook = await changeAs(caller, deps.db, async (trx, record) => {
    const resource = webhookResource(found)
    record({ action: 'WEBHOOK_REDELIVERED', resource, metadata: { from, to } })
    return await lockEnabled(trx, found)
  })
  const result = await redeliverWindow(deps.db, webhook, window, deps.clock)
  deps.wakeDispatcher()
  return result
}

/** The most deliveries that one request retries, in one transaction. */
const RETRIED_PER_STEP_MAX = 1_000

type RetryRequest = { status: RetryableStatus; scope: RetryScope; afterSequence: number }

type RetryResult = Pick<RetryStep, 'queued' | 'archived'> & {
  /** The `afterSequence` of the next step. Null if this was the last one. */
  continueAfter: number | null
}

/** Schedules the next deliveries with a status again, for attempts at once. */
export async function retryDeliveries(
  deps: WebhookActionDeps,
  caller: Caller,
  webhookId: string,
  { status, scope, afterSequence }: RetryRequest,
): Promise<RetryResult> {
  const webhook = await getWebhook(deps, caller, webhookId)
  const ref = { workspaceId: webhook.workspaceId, webhookId: webhook.id }
  const result = await changeAs(caller, deps.db, async (trx, record) => {
    // Waiting deliveries are open already.
    const room = status === 'FAILED' ? await readOpenRoom(trx, ref) : RETRIED_PER_STEP_MAX
    const limit = Math.min(room, RETRIED_PER_STEP_MAX)
    const now = new Date(deps.clock())
    const step = await retryStep(trx, { ...ref, status, scope, afterSequence, limit, now })
    await lockEnabled(trx, webhook)
    if (room === 0) throw backlogFullError('Retry the rest')
    const { queued, archived, lastSequence } = step
    const metadata = { status, count: queued }
    const resource = webhookResource(webhook)
    if (queued > 0) record({ action: 'WEBHOOK_REDELIVERED', resource, metadata })
    // A step that queued none of the waiting deliveries would repeat itself.
    const isLast = queued + archived < limit || (status !== 'FAILED' && queued === 0)
    return { queued, archived, continueAfter: isLast ? null : lastSequence }
  })
  deps.wakeDispatcher()
  return result
}

/** Nothing disables the webhook until the transaction ends. */
async function lockEnabled(trx: Queryable, webhook: Webhook): Promise<Webhook> {
  const current = await lockWebhook(trx, webhook)
  if (!current) throw new ApiError('not_found')
  if (current.status === 'DISABLED') throw webhookDisabledError()
  return current
}

function webhookDisabledError(): ApiError {
  return new ApiError('conflict', { message: 'The webhook is disabled. Enable it first.' })
}
